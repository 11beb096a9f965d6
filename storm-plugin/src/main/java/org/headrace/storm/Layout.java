package org.headrace.storm;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;

/** Plans of several topologies as slots of a cluster; a plan that does not fit it is refused in words. */
final class Layout {
    /** The name of a node in a supervisor's {@code supervisor.scheduler.meta}; without it its host is its name. */
    static final String NODE = "headrace.node";

    private final Cluster cluster;
    private final Map<String, List<WorkerSlot>> slots = new HashMap<>();
    private final Set<String> blacklisted = new HashSet<>();

    Layout(Cluster cluster) {
        this.cluster = cluster;
        for (SupervisorDetails supervisor : cluster.getSupervisors().values()) {
            Set<String> names = new HashSet<>(List.of(nodeOf(supervisor), supervisor.getId()));
            names.add(supervisor.getHost());
            for (String name : names) {
                List<WorkerSlot> here = slots.computeIfAbsent(name, n -> new ArrayList<>());
                supervisor.getAllPorts().forEach(port -> here.add(new WorkerSlot(supervisor.getId(), port)));
                if (cluster.isBlackListed(supervisor.getId())) {
                    blacklisted.add(name);
                }
            }
        }
        slots.values().forEach(here -> here.sort(
            Comparator.comparing(WorkerSlot::getNodeId).thenComparingInt(WorkerSlot::getPort)));
    }

    /** What plans call a supervisor. */
    static String nodeOf(SupervisorDetails supervisor) {
        Object meta = supervisor.getSchedulerMeta();
        Object name = meta instanceof Map ? ((Map<?, ?>) meta).get(NODE) : null;
        return name != null ? String.valueOf(name)
            : supervisor.getHost() != null ? supervisor.getHost() : supervisor.getId();
    }

    /** Refuses a plan that is not for the topology's executors or not for nodes that are there. */
    Map<String, Map<Integer, Set<ExecutorDetails>>> workers(TopologyDetails topology, Plan plan) {
        Map<String, ExecutorDetails> executors = Executors.byName(topology);
        for (String task : plan.places().keySet()) {
            if (!executors.containsKey(task)) {
                throw new Refusal("it places " + task + ", which is no executor of " + topology.getName());
            }
        }
        Map<String, Map<Integer, Set<ExecutorDetails>>> found = new TreeMap<>();
        List<ExecutorDetails> system = new ArrayList<>();
        executors.forEach((task, executor) -> {
            Plan.Place place = plan.places().get(task);
            if (place == null && Executors.isSystem(task)) {
                system.add(executor);
            } else if (place == null) {
                throw new Refusal("it has no place for " + task);
            } else {
                checkNode(place.node());
                found.computeIfAbsent(place.node(), n -> new TreeMap<>())
                    .computeIfAbsent(place.worker(), w -> new HashSet<>()).add(executor);
            }
        });
        List<Set<ExecutorDetails>> all = new ArrayList<>();
        found.values().forEach(here -> all.addAll(here.values()));
        if (all.isEmpty()) {
            throw new Refusal("it places nothing");
        }
        // A plan made without Storm's own components: one after the other beside the rest.
        for (int i = 0; i < system.size(); i++) {
            all.get(i % all.size()).add(system.get(i));
        }
        return found;
    }

    private void checkNode(String node) {
        if (!slots.containsKey(node)) {
            throw new Refusal("node " + node + " is not there");
        }
        if (blacklisted.contains(node)) {
            throw new Refusal("node " + node + " is blacklisted");
        }
    }

    /**
     * The slots of every plan's workers. Workers whose executors stay the same keep their slots; slots of topologies
     * without a plan are not touched. Plans for which there are not enough slots end up in {@code refused}.
     */
    Map<String, Map<WorkerSlot, Set<ExecutorDetails>>> slots(
        Map<String, Map<String, Map<Integer, Set<ExecutorDetails>>>> wanted, Map<String, Refusal> refused) {
        Set<String> left = new HashSet<>(wanted.keySet());
        while (true) {
            Set<WorkerSlot> taken = new HashSet<>();
            cluster.getAssignments().forEach((id, assignment) -> {
                if (!left.contains(id)) {
                    taken.addAll(assignment.getSlots());
                }
            });
            Map<String, Map<WorkerSlot, Set<ExecutorDetails>>> found = new TreeMap<>();
            for (String id : left) {
                found.put(id, keep(id, wanted.get(id)));
                taken.addAll(found.get(id).keySet());
            }
            String failed = null;
            for (String id : new ArrayList<>(found.keySet())) {
                try {
                    fill(wanted.get(id), found.get(id), taken);
                } catch (Refusal refusal) {
                    refused.put(id, refusal);
                    failed = id;
                    break;
                }
            }
            if (failed == null) {
                return found;
            }
            left.remove(failed);
        }
    }

    /** Workers that have just these executors already, on the node where the plan wants them. */
    private Map<WorkerSlot, Set<ExecutorDetails>> keep(
        String id, Map<String, Map<Integer, Set<ExecutorDetails>>> wanted) {
        Map<WorkerSlot, Set<ExecutorDetails>> found = new LinkedHashMap<>();
        Map<WorkerSlot, Collection<ExecutorDetails>> now = running(id);
        wanted.forEach((node, workers) -> workers.values().forEach(executors -> now.forEach((slot, present) -> {
            if (slots.get(node).contains(slot) && Executors.same(present, executors)) {
                found.put(slot, executors);
            }
        })));
        return found;
    }

    private void fill(
        Map<String, Map<Integer, Set<ExecutorDetails>>> wanted,
        Map<WorkerSlot, Set<ExecutorDetails>> found,
        Set<WorkerSlot> taken) {
        wanted.forEach((node, workers) -> {
            List<WorkerSlot> here = slots.get(node);
            List<WorkerSlot> free = new ArrayList<>(here);
            free.removeAll(taken);
            workers.forEach((worker, executors) -> {
                if (found.containsValue(executors)) {
                    return;
                }
                if (free.isEmpty()) {
                    throw new Refusal("node " + node + " has too few free slots for its "
                        + workers.size() + " workers");
                }
                WorkerSlot own = worker < here.size() && free.contains(here.get(worker))
                    ? here.get(worker) : free.get(0);
                free.remove(own);
                taken.add(own);
                found.put(own, executors);
            });
        });
    }

    /** Puts slots into force, and says whose change; what does not is not touched, so its worker goes on. */
    Set<String> apply(Map<String, Map<WorkerSlot, Set<ExecutorDetails>>> wanted) {
        Set<String> changed = new HashSet<>();
        wanted.forEach((id, workers) -> running(id).forEach((slot, present) -> {
            if (!workers.containsKey(slot) || !Executors.same(present, workers.get(slot))) {
                cluster.freeSlot(slot);
                changed.add(id);
            }
        }));
        wanted.forEach((id, workers) -> workers.forEach((slot, executors) -> {
            if (!cluster.isSlotOccupied(slot)) {
                cluster.assign(slot, id, executors);
                changed.add(id);
            }
        }));
        return changed;
    }

    private Map<WorkerSlot, Collection<ExecutorDetails>> running(String id) {
        SchedulerAssignment assignment = cluster.getAssignmentById(id);
        return assignment == null ? Map.of() : new HashMap<>(assignment.getSlotToExecutors());
    }

    /** Whether every executor of a topology is on a slot of a supervisor that is there. */
    boolean isComplete(TopologyDetails topology) {
        SchedulerAssignment assignment = cluster.getAssignmentById(topology.getId());
        return assignment != null
            && assignment.getExecutors().containsAll(topology.getExecutors())
            && assignment.getSlots().stream().allMatch(slot -> cluster.getSupervisorById(slot.getNodeId()) != null);
    }

    /** Why a plan is not put into force. */
    static final class Refusal extends RuntimeException {
        Refusal(String reason) {
            super(reason, null, false, false);
        }
    }
}
