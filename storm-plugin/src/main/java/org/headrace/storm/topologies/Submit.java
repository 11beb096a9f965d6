package org.headrace.storm.topologies;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.StormSubmitter;
import org.headrace.storm.Json;

/** Submits one of the example topologies: {@code Submit KIND NAME PARAMETERS}, the last as JSON. */
public final class Submit {
    private Submit() { }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> given = Json.readObject(arguments[2]);
        StormSubmitter.submitTopology(arguments[1], conf(given), Topologies.build(arguments[0], Parameters.of(given)));
    }

    /** Storm's own settings among the parameters. */
    public static Map<String, Object> conf(Map<String, Object> given) {
        Map<String, Object> conf = new HashMap<>();
        asYaml(given).forEach((name, value) -> {
            if (name.startsWith("topology.")) {
                conf.put(name, value);
            }
        });
        return conf;
    }

    /** Whole numbers as a YAML file would have them; Storm casts some of its settings. */
    public static Map<String, Object> asYaml(Map<String, Object> given) {
        Map<String, Object> found = new HashMap<>();
        given.forEach((name, value) -> {
            boolean small = value instanceof Long && ((Long) value).intValue() == (Long) value;
            found.put(name, small ? (Object) ((Long) value).intValue() : value);
        });
        return found;
    }
}
