package org.headrace.storm;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A folder of plan files as {@code headrace place --out NAME.json} writes them.
 *
 * <p>A file is for the topology that it names, else for that of its own name; one of several topologies calls its tasks
 * {@code topology/component.N}.
 */
final class Folder implements Source {
    private final Path folder;

    Folder(Path folder) {
        this.folder = folder;
    }

    @Override
    public Plans ask(Map<String, Object> state) throws Exception {
        if (!Files.isDirectory(folder)) {
            throw new IllegalStateException("there is no such folder");
        }
        List<Path> files;
        try (Stream<Path> all = Files.list(folder)) {
            files = all.filter(file -> file.getFileName().toString().endsWith(".json")).sorted()
                .collect(Collectors.toCollection(ArrayList::new));
        }
        Map<String, Plan> plans = new LinkedHashMap<>();
        Map<String, String> refusals = new LinkedHashMap<>();
        for (Path file : files) {
            String name = file.getFileName().toString().replaceAll("\\.json$", "");
            try {
                plans.putAll(read(name, Files.readString(file)));
            } catch (IllegalArgumentException error) {
                refusals.put(name, file.getFileName() + ": " + error.getMessage());
            }
        }
        return new Plans(plans, refusals, null);
    }

    /** The plans of a file by topology. */
    static Map<String, Plan> read(String name, String text) {
        Map<String, Object> content = Json.readObject(text);
        if (content.get("plan") == null) {
            throw new IllegalArgumentException("it holds no `plan`");
        }
        Plan plan = Plan.read(name, content.get("plan"));
        Map<String, Map<String, Plan.Place>> byTopology = new TreeMap<>();
        plan.places().forEach((task, place) -> {
            int slash = task.indexOf('/');
            byTopology.computeIfAbsent(slash < 0 ? "" : task.substring(0, slash), t -> new LinkedHashMap<>())
                .put(task.substring(slash + 1), place);
        });
        Map<String, Plan> found = new TreeMap<>();
        byTopology.forEach((topology, places) ->
            found.put(topology.isEmpty() ? topologyOf(content, name) : topology, new Plan(plan.name(), places)));
        return found;
    }

    private static String topologyOf(Map<String, Object> content, String otherwise) {
        Object topology = content.get("topology");
        Object name = topology instanceof Map ? ((Map<?, ?>) topology).get("name") : null;
        return name instanceof String ? (String) name : otherwise;
    }

    @Override
    public String describe() {
        return "the folder " + folder;
    }
}
