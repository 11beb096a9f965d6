package org.headrace.storm.referee;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.Config;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.resource.normalization.ResourceMetrics;
import org.apache.storm.utils.Utils;
import org.headrace.storm.HeadraceScheduler;
import org.headrace.storm.Json;
import org.headrace.storm.topologies.Parameters;
import org.headrace.storm.topologies.Topologies;

/** Our scheduler on a cluster of n1 and n2, first with n2 blacklisted and then without; prints what it did. */
public final class BlacklistTrial {
    private static final StormMetricsRegistry METRICS = new StormMetricsRegistry();

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put("headrace.plans", arguments[0]);
        conf.put("headrace.folder", arguments[1]);
        conf.put("headrace.timeout.secs", 1);
        conf.put(Config.TOPOLOGY_NAME, "any");
        HeadraceScheduler scheduler = new HeadraceScheduler();
        scheduler.prepare(conf, METRICS);
        StormTopology structure = Topologies.build("exclamation", Parameters.of(Map.of()));
        Map<ExecutorDetails, String> executors = new HashMap<>();
        for (String name : structure.get_spouts().keySet()) {
            executors.put(new ExecutorDetails(executors.size() + 1, executors.size() + 1), name);
        }
        for (String name : structure.get_bolts().keySet()) {
            executors.put(new ExecutorDetails(executors.size() + 1, executors.size() + 1), name);
        }
        TopologyDetails topology = new TopologyDetails("any-1", conf, structure, 1, executors, 0, "headrace");
        for (Set<String> blacklisted : List.of(Set.of("n2"), Set.<String>of())) {
            System.out.println("answer " + Json.write(place(scheduler, topology, blacklisted)));
        }
        System.exit(0);
    }

    /** Status and nodes once every executor has a place. */
    private static Map<String, Object> place(
        HeadraceScheduler scheduler, TopologyDetails topology, Set<String> blacklisted) throws Exception {
        org.apache.storm.scheduler.Topologies all = new org.apache.storm.scheduler.Topologies(topology);
        Map<String, SupervisorDetails> supervisors = new LinkedHashMap<>();
        for (String node : List.of("n1", "n2")) {
            supervisors.put(node, new SupervisorDetails(node, node, null, List.of(6700, 6701), Map.of()));
        }
        while (true) {
            Cluster cluster = new Cluster(new Alone(), new ResourceMetrics(METRICS), supervisors, new HashMap<>(), all,
                topology.getConf());
            cluster.setBlacklistedHosts(blacklisted);
            scheduler.schedule(all, cluster);
            SchedulerAssignment placed = cluster.getAssignmentById(topology.getId());
            if (placed != null) {
                List<String> nodes = placed.getSlots().stream().map(slot -> slot.getNodeId()).distinct().toList();
                return Map.of("status", cluster.getStatus(topology.getId()), "nodes", nodes);
            }
            Thread.sleep(100);
        }
    }
}
