package org.headrace.storm.topologies;

import java.io.Serializable;
import java.util.Map;
import java.util.TreeMap;

/** What a topology is asked for; what was not said has its default. */
public record Parameters(
    double rate,
    int payloadBytes,
    double work,
    int ioBytes,
    int tasks,
    int words,
    long tuples,
    boolean acks,
    long seed,
    String measures) implements Serializable {

    private static final Map<String, Object> DEFAULTS = new TreeMap<>(Map.of(
        "rate", 400.0, "payload_bytes", 0L, "work", 0.0, "io_bytes", 0L, "tasks", 0L, "words", 10L,
        "tuples", 0L, "acks", true, "seed", 0L, "measures", ""));

    /** Reads parameters; refuses those that there are not. */
    public static Parameters of(Map<String, Object> given) {
        Map<String, Object> all = new TreeMap<>(DEFAULTS);
        given.forEach((name, value) -> {
            if (name.startsWith("topology.")) {
                return; // one of Storm's own settings
            }
            if (!all.containsKey(name)) {
                throw new IllegalArgumentException(
                    "there is no parameter `" + name + "`; there are " + DEFAULTS.keySet());
            }
            all.put(name, value);
        });
        return new Parameters(
            number(all, "rate").doubleValue(),
            number(all, "payload_bytes").intValue(),
            number(all, "work").doubleValue(),
            number(all, "io_bytes").intValue(),
            number(all, "tasks").intValue(),
            number(all, "words").intValue(),
            number(all, "tuples").longValue(),
            Boolean.TRUE.equals(all.get("acks")),
            number(all, "seed").longValue(),
            String.valueOf(all.get("measures")));
    }

    private static Number number(Map<String, Object> all, String name) {
        Object value = all.get(name);
        if (value instanceof Number && ((Number) value).doubleValue() >= 0) {
            return (Number) value;
        }
        throw new IllegalArgumentException("parameter `" + name + "` is " + value + "; it needs a number from 0");
    }
}
