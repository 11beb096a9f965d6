package org.headrace.storm.referee;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.Config;
import org.apache.storm.DaemonConfig;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.NullStruct;
import org.apache.storm.generated.SpoutSpec;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.apache.storm.scheduler.resource.normalization.ResourceMetrics;
import org.apache.storm.utils.Utils;
import org.headrace.storm.Json;

/**
 * Runs one of Storm's own schedulers on a cluster that exists only as JSON, outside Nimbus.
 *
 * <p>Reads {@code {"problems": [{"strategy", "nodes", "topologies"}]}} from standard input and
 * writes where every executor was placed to standard output. Without a strategy it is the default
 * scheduler. Nodes,
 * racks and topologies are called by their position, with leading zeros, so that Storm's order by
 * name is the order of the file.
 */
public final class Referee {
    private static final int FIRST_PORT = 6700;

    private Referee() {
    }

    /** Reads problems, lets Storm place them one after another, writes the answers. */
    public static void main(String[] args) throws IOException {
        // Storm's classes may write to standard output while they work: the answer has it alone.
        PrintStream answer = System.out;
        System.setOut(System.err);
        String text = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        List<Object> answers = new ArrayList<>();
        for (Map<String, Object> problem : list(Json.readObject(text), "problems")) {
            answers.add(place(problem));
        }
        answer.println(Json.write(Map.of("answers", answers)));
        answer.flush();
        System.exit(0); // the resource-aware scheduler's threads would stay
    }

    private static Map<String, Object> place(Map<String, Object> problem) {
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put(Config.STORM_NETWORK_TOPOGRAPHY_PLUGIN, Racks.class.getName());
        conf.put(DaemonConfig.SCHEDULING_TIMEOUT_SECONDS_PER_TOPOLOGY, 600);
        String strategy = (String) problem.get("strategy");
        List<TopologyDetails> topologies = new ArrayList<>();
        for (Map<String, Object> topology : list(problem, "topologies")) {
            topologies.add(readTopology(topology, conf, strategy, topologies.size()));
        }
        StormMetricsRegistry metrics = new StormMetricsRegistry();
        Topologies all = new Topologies(topologies.toArray(new TopologyDetails[0]));
        Cluster cluster = new Cluster(new Alone(), new ResourceMetrics(metrics),
            readNodes(list(problem, "nodes")), new HashMap<>(), all, conf);
        long start = System.nanoTime();
        if (strategy == null) {
            cluster = scheduleEvenly(cluster, topologies, metrics);
        } else {
            schedule(new ResourceAwareScheduler(), cluster, all, metrics);
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        return Map.of("seconds", seconds, "topologies", write(topologies, cluster));
    }

    private static void schedule(IScheduler scheduler, Cluster cluster, Topologies topologies,
                                 StormMetricsRegistry metrics) {
        scheduler.prepare(cluster.getConf(), metrics);
        scheduler.schedule(topologies, cluster);
    }

    /**
     * One topology after another: among several, the default scheduler has no order but that of a
     * hash map. Those before a topology count as running with the workers they got, or they would
     * be dealt out again.
     */
    private static Cluster scheduleEvenly(Cluster empty, List<TopologyDetails> topologies,
                                          StormMetricsRegistry metrics) {
        Cluster cluster = empty;
        List<TopologyDetails> running = new ArrayList<>();
        for (TopologyDetails topology : topologies) {
            running.add(topology);
            Topologies known = new Topologies(running.toArray(new TopologyDetails[0]));
            cluster = new Cluster(new Alone(), new ResourceMetrics(metrics),
                empty.getSupervisors(), cluster.getAssignments(), known, empty.getConf());
            schedule(new DefaultScheduler(), cluster, known, metrics);
            running.remove(topology);
            SchedulerAssignment placed = cluster.getAssignmentById(topology.getId());
            if (placed != null) {
                running.add(new TopologyDetails(topology.getId(), topology.getConf(),
                    topology.getTopology(), placed.getSlots().size(),
                    topology.getExecutorToComponent(), topology.getLaunchTime(), "headrace"));
            }
        }
        return cluster;
    }

    private static Map<String, SupervisorDetails> readNodes(List<Map<String, Object>> nodes) {
        Map<String, SupervisorDetails> supervisors = new HashMap<>();
        for (Map<String, Object> node : nodes) {
            String id = (String) node.get("id");
            List<Integer> ports = new ArrayList<>();
            for (int slot = 0; slot < integer(node, "slots"); slot++) {
                ports.add(FIRST_PORT + slot);
            }
            Map<String, Double> room = resources(node);
            room.put(Config.SUPERVISOR_CPU_CAPACITY, number(node, "cpu"));
            room.put(Config.SUPERVISOR_MEMORY_CAPACITY_MB, number(node, "memory_mb"));
            Racks.put(id, (String) node.get("rack"));
            supervisors.put(id, new SupervisorDetails(id, id, null, ports, room));
        }
        return supervisors;
    }

    private static TopologyDetails readTopology(Map<String, Object> topology,
                                                Map<String, Object> defaults, String strategy,
                                                int position) {
        String id = (String) topology.get("id");
        Map<String, Object> conf = new HashMap<>(defaults);
        conf.put(Config.TOPOLOGY_NAME, id);
        conf.put(Config.TOPOLOGY_PRIORITY, position);
        conf.put(Config.TOPOLOGY_SUBMITTER_USER, "headrace");
        conf.put(Config.TOPOLOGY_WORKER_MAX_HEAP_SIZE_MB, number(topology, "worker_heap_mb"));
        if (strategy != null) {
            conf.put(Config.TOPOLOGY_SCHEDULER_STRATEGY, strategy);
        }
        Map<String, Integer> tasks = new TreeMap<>(); // Storm numbers tasks by component name
        StormTopology structure = new StormTopology();
        structure.set_spouts(new HashMap<>());
        structure.set_bolts(new HashMap<>());
        structure.set_state_spouts(new HashMap<>());
        for (Map<String, Object> component : list(topology, "components")) {
            String name = (String) component.get("name");
            tasks.put(name, integer(component, "tasks"));
            if (Utils.isSystemId(name)) {
                readSystemDemand(component, conf);
            } else {
                addComponent(structure, name, component);
            }
        }
        Map<ExecutorDetails, String> executors = new HashMap<>();
        int task = 0;
        for (Map.Entry<String, Integer> entry : tasks.entrySet()) {
            for (int i = 0; i < entry.getValue(); i++) {
                task++;
                executors.put(new ExecutorDetails(task, task), entry.getKey());
            }
        }
        return new TopologyDetails(id, conf, structure, integer(topology, "workers"), executors,
            position, "headrace");
    }

    /** Ackers have no entry in a topology: they ask for the topology's own acker demands. */
    private static void readSystemDemand(Map<String, Object> component, Map<String, Object> conf) {
        conf.put(Config.TOPOLOGY_ACKER_CPU_PCORE_PERCENT, number(component, "cpu"));
        conf.put(Config.TOPOLOGY_ACKER_RESOURCES_ONHEAP_MEMORY_MB, number(component, "memory_mb"));
        conf.put(Config.TOPOLOGY_ACKER_RESOURCES_OFFHEAP_MEMORY_MB, 0.0);
    }

    private static void addComponent(StormTopology structure, String name,
                                     Map<String, Object> component) {
        Map<GlobalStreamId, Grouping> inputs = new HashMap<>();
        for (Object source : (List<?>) component.get("inputs")) {
            inputs.put(new GlobalStreamId((String) source, "default"),
                Grouping.shuffle(new NullStruct()));
        }
        ComponentCommon common = new ComponentCommon(inputs, new HashMap<>());
        common.set_parallelism_hint(integer(component, "tasks"));
        common.set_json_conf(demand(component));
        if (Boolean.TRUE.equals(component.get("spout"))) {
            structure.get_spouts().put(name, new SpoutSpec(new ComponentObject(), common));
        } else {
            structure.get_bolts().put(name, new Bolt(new ComponentObject(), common));
        }
    }

    private static String demand(Map<String, Object> component) {
        return Json.write(Map.of(
            Config.TOPOLOGY_COMPONENT_CPU_PCORE_PERCENT, number(component, "cpu"),
            Config.TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB, number(component, "memory_mb"),
            Config.TOPOLOGY_COMPONENT_RESOURCES_OFFHEAP_MEMORY_MB, 0.0,
            Config.TOPOLOGY_COMPONENT_RESOURCES_MAP, resources(component)));
    }

    /** Status and executors of every topology; an executor is a task, a node and a slot. */
    private static List<Map<String, Object>> write(List<TopologyDetails> topologies,
                                                   Cluster cluster) {
        List<Map<String, Object>> answers = new ArrayList<>();
        for (TopologyDetails topology : topologies) {
            Map<Integer, Object> executors = new TreeMap<>();
            SchedulerAssignment placed = cluster.getAssignmentById(topology.getId());
            if (placed != null) {
                placed.getExecutorToSlot().forEach((executor, slot) -> executors.put(
                    executor.getStartTask(), List.of(
                        executor.getStartTask(), slot.getNodeId(), slot.getPort() - FIRST_PORT)));
            }
            String status = cluster.getStatusMap().getOrDefault(topology.getId(), "");
            answers.add(Map.of("id", topology.getId(), "status", status,
                "executors", new ArrayList<>(executors.values())));
        }
        return answers;
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> list(Map<String, Object> map, String key) {
        return (List<Map<String, Object>>) map.get(key);
    }

    private static Map<String, Double> resources(Map<String, Object> map) {
        Map<String, Double> amounts = new TreeMap<>();
        ((Map<?, ?>) map.get("resources")).forEach(
            (name, amount) -> amounts.put((String) name, ((Number) amount).doubleValue()));
        return amounts;
    }

    private static double number(Map<String, Object> map, String key) {
        return ((Number) map.get(key)).doubleValue();
    }

    private static int integer(Map<String, Object> map, String key) {
        return ((Number) map.get(key)).intValue();
    }
}
