package org.headrace.storm;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.TopologyDetails;

/** The executors of a topology by the names that plans give them. */
final class Executors {
    private Executors() { }

    /** Every executor as {@code component.N}, N from 1 in the order of their tasks. */
    static Map<String, ExecutorDetails> byName(TopologyDetails topology) {
        Map<String, List<ExecutorDetails>> byComponent = new TreeMap<>();
        topology.getExecutorToComponent().forEach(
            (executor, component) -> byComponent.computeIfAbsent(component, c -> new ArrayList<>()).add(executor));
        Map<String, ExecutorDetails> found = new LinkedHashMap<>();
        byComponent.forEach((component, executors) -> {
            executors.sort(Comparator.comparingInt(ExecutorDetails::getStartTask));
            for (int i = 0; i < executors.size(); i++) {
                found.put(component + "." + (i + 1), executors.get(i));
            }
        });
        return found;
    }

    static String componentOf(String name) {
        return name.substring(0, name.lastIndexOf('.'));
    }

    /** Whether Storm added a component by itself: ackers, loggers of events, consumers of metrics. */
    static boolean isSystem(String name) {
        return name.startsWith("__");
    }

    /** Whether Storm counts executors as equal, in any order. */
    static boolean same(Collection<ExecutorDetails> one, Collection<ExecutorDetails> other) {
        return one.size() == other.size() && one.containsAll(other);
    }
}
