package org.headrace.storm;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Where every executor of a topology is to run: executor {@code component.N} to node and worker. */
public record Plan(String name, Map<String, Place> places) {

    /** A node by its name, host or supervisor's id, and the number of a worker on it, from 0. */
    public record Place(String node, int worker) { }

    /** A plan as the protocol and Headrace's plan files have it: `assignment`, or `placement` by ranges. */
    public static Plan read(String name, Object content) {
        Map<String, Object> plan = Json.object(content, "plan " + name);
        Map<String, Place> places = new LinkedHashMap<>();
        Object assignment = plan.get("assignment");
        if (assignment != null) {
            Json.object(assignment, "the assignment of plan " + name).forEach((task, place) -> {
                Map<String, Object> where = Json.object(place, "the place of " + task);
                places.put(task, new Place(text(where.get("node"), task), number(where.get("worker"), task)));
            });
        } else if (plan.get("placement") != null) {
            Json.object(plan.get("placement"), "the placement of plan " + name)
                .forEach((component, ranges) -> spread(component, ranges, places));
        } else {
            throw new IllegalArgumentException("plan " + name + " has neither `assignment` nor `placement`");
        }
        return new Plan(plan.get("name") instanceof String ? (String) plan.get("name") : name, places);
    }

    /** The plan in the form in which it is kept on disk. */
    public Map<String, Object> content() {
        Map<String, Object> assignment = new LinkedHashMap<>();
        places.forEach((task, place) -> assignment.put(task, Map.of("node", place.node(), "worker", place.worker())));
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("name", name);
        found.put("assignment", assignment);
        return found;
    }

    private static void spread(String component, Object ranges, Map<String, Place> places) {
        if (!(ranges instanceof List)) {
            throw new IllegalArgumentException("the placement of " + component + " is not a list");
        }
        for (Object item : (List<?>) ranges) {
            if (!(item instanceof List) || ((List<?>) item).size() != 4) {
                throw new IllegalArgumentException(
                    "the placement of " + component + " needs [node, worker, first, last]");
            }
            List<?> range = (List<?>) item;
            Place place = new Place(text(range.get(0), component), number(range.get(1), component));
            for (int n = number(range.get(2), component); n <= number(range.get(3), component); n++) {
                places.put(component + "." + n, place);
            }
        }
    }

    private static String text(Object value, String of) {
        if (value instanceof String) {
            return (String) value;
        }
        throw new IllegalArgumentException("the node of " + of + " is not a name");
    }

    private static int number(Object value, String of) {
        if (value instanceof Long && (Long) value >= 0 && (Long) value <= Integer.MAX_VALUE) {
            return ((Long) value).intValue();
        }
        throw new IllegalArgumentException("a number of " + of + " is not a whole one from 0");
    }
}
