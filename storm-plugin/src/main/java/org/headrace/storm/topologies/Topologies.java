package org.headrace.storm.topologies;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/** Example topologies with the names, counts and contents of Headrace's examples for Spark. */
public final class Topologies {
    static final String TICK = "tick";
    /** H. Nasiri et al., table 3, machine 1: what a tuple costs in low, mid and high compute bolts. */
    private static final Map<String, Double> STEPS = Map.of("low", 581.0, "mid", 1030.0, "high", 1915.0, "sink", 581.0);
    private static final Map<String, Map<String, List<String>>> SHAPES = new TreeMap<>(Map.of(
        "linear", ordered("low", List.of("source"), "mid", List.of("low"), "high", List.of("mid")),
        "diamond", ordered("low", List.of("source"), "mid", List.of("source"), "high", List.of("source"),
            "sink", List.of("low", "mid", "high")),
        "star", ordered("mid", List.of("source-1", "source-2"), "low", List.of("mid"), "high", List.of("mid"))));

    private Topologies() { }

    /** The names that {@link #build} knows. */
    public static List<String> names() {
        return List.of("diamond", "exclamation", "linear", "rolling-count", "star", "unique-visitors", "word-count");
    }

    /** A topology by its name. */
    public static StormTopology build(String name, Parameters p) {
        TopologyBuilder builder = new TopologyBuilder();
        int tasks = p.tasks() == 0 ? 4 : p.tasks();
        switch (name) {
            case "word-count" -> {
                builder.setSpout("sentence", new SourceSpout(p, Tuples.sentences(p.words(), p.seed()), "sentence"), 2);
                bolt(builder, "split", p, Topologies::splitter, "word", tasks).shuffleGrouping("sentence");
                bolt(builder, "count", p, Topologies::counter, "count", tasks)
                    .fieldsGrouping("split", new Fields("word"));
            }
            case "rolling-count" -> {
                builder.setSpout("sentence", new SourceSpout(p, Tuples.sentences(8, p.seed()), "sentence"), 2);
                builder.setBolt("split", new WorkBolt(p, Topologies::splitter, List.of("word"), 1000, true), tasks)
                    .shuffleGrouping("sentence");
                bolt(builder, "count", p, Topologies::counter, "count", tasks)
                    .fieldsGrouping("split", new Fields("word")).allGrouping("split", TICK);
            }
            case "exclamation" -> {
                builder.setSpout("word", new SourceSpout(p, Tuples.names(p.seed()), "word"), 10);
                bolt(builder, "exclaim1", p, Topologies::exclaimer, "word", 3).shuffleGrouping("word");
                bolt(builder, "exclaim2", p, Topologies::exclaimer, "word", 2).shuffleGrouping("exclaim1");
            }
            case "unique-visitors" -> {
                builder.setSpout("view", new SourceSpout(p, Tuples.views(p.seed()), "view"), 2);
                builder.setBolt("read", new WorkBolt(p, Topologies::reader, List.of("page", "user"), 1000, false), tasks)
                    .shuffleGrouping("view");
                bolt(builder, "unique", p, Topologies::visitors, "visitors", tasks)
                    .fieldsGrouping("read", new Fields("page"));
            }
            default -> micro(builder, name, p);
        }
        return builder.createTopology();
    }

    private static void micro(TopologyBuilder builder, String name, Parameters p) {
        Map<String, List<String>> shape = SHAPES.get(name);
        if (shape == null) {
            throw new IllegalArgumentException("there is no topology `" + name + "`; there are " + names());
        }
        Set<String> sources = new HashSet<>();
        shape.values().forEach(sources::addAll);
        sources.removeAll(shape.keySet());
        for (String source : new TreeSet<>(sources)) {
            builder.setSpout(source, new SourceSpout(p, Tuples.values(p.seed()), "value"), 1);
        }
        shape.forEach((bolt, inputs) -> {
            WorkBolt work = new WorkBolt(p, () -> List::of, List.of("value"), STEPS.get(bolt), false);
            BoltDeclarer declared = builder.setBolt(bolt, work, p.tasks() == 0 ? 2 : p.tasks());
            inputs.forEach(declared::shuffleGrouping);
        });
    }

    private static BoltDeclarer bolt(
        TopologyBuilder builder, String name, Parameters p, WorkBolt.Steps steps, String field, int tasks) {
        return builder.setBolt(name, new WorkBolt(p, steps, List.of(field), 1000, false), tasks);
    }

    private static WorkBolt.Step splitter() {
        return values -> {
            List<List<Object>> words = new ArrayList<>();
            for (String word : String.valueOf(values.get(0)).split(" ")) {
                words.add(List.of(word));
            }
            return words;
        };
    }

    private static WorkBolt.Step counter() {
        Map<Object, Long> counts = new HashMap<>();
        return values -> {
            counts.merge(values.get(0), 1L, Long::sum);
            return List.of();
        };
    }

    private static WorkBolt.Step exclaimer() {
        return values -> List.of(List.of(values.get(0) + "!!!"));
    }

    /** The page and the user of views that found their page. */
    private static WorkBolt.Step reader() {
        return values -> {
            String[] fields = String.valueOf(values.get(0)).split("\t");
            return fields.length == 4 && fields[1].equals("200")
                ? List.of(List.of(fields[0], fields[3])) : List.of();
        };
    }

    private static WorkBolt.Step visitors() {
        Map<Object, Set<Object>> users = new HashMap<>();
        return values -> {
            users.computeIfAbsent(values.get(0), page -> new HashSet<>()).add(values.get(1));
            return List.of();
        };
    }

    private static Map<String, List<String>> ordered(Object... items) {
        Map<String, List<String>> found = new LinkedHashMap<>();
        for (int i = 0; i < items.length; i += 2) {
            @SuppressWarnings("unchecked")
            List<String> inputs = (List<String>) items[i + 1];
            found.put((String) items[i], inputs);
        }
        return found;
    }
}
