package org.headrace.storm;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.utils.VersionInfo;

/** What Headrace has to know of a cluster to plan it, as protocol {@code headrace-storm/1} has it. */
final class State {
    /** Settings that decide how tuples and workers are divided; others may hold secrets and stay here. */
    private static final List<String> SETTINGS = List.of(
        "topology.workers", "topology.acker.executors", "topology.disable.loadaware.messaging",
        "topology.localityaware.higher.bound", "topology.localityaware.lower.bound", "topology.max.spout.pending",
        "topology.message.timeout.secs", "topology.worker.max.heap.size.mb", "topology.priority",
        "topology.scheduler.strategy", "topology.eventlogger.executors", "topology.component.cpu.pcore.percent",
        "topology.component.resources.onheap.memory.mb");

    private State() { }

    static Map<String, Object> of(Topologies topologies, Cluster cluster) {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("protocol", Service.PROTOCOL);
        state.put("storm", VersionInfo.getVersion());
        state.put("at_ms", System.currentTimeMillis());
        Map<String, String> racks = new TreeMap<>();
        cluster.getNetworkTopography().forEach((rack, hosts) -> hosts.forEach(host -> racks.put(host, rack)));
        List<Object> supervisors = new ArrayList<>();
        new TreeMap<>(cluster.getSupervisors()).values()
            .forEach(supervisor -> supervisors.add(supervisor(supervisor, cluster, racks)));
        state.put("supervisors", supervisors);
        List<Object> all = new ArrayList<>();
        for (String id : new TreeSet<>(topologies.getAllIds())) {
            all.add(topology(topologies.getById(id), cluster));
        }
        state.put("topologies", all);
        return state;
    }

    private static Map<String, Object> supervisor(
        SupervisorDetails supervisor, Cluster cluster, Map<String, String> racks) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("id", supervisor.getId());
        found.put("node", Layout.nodeOf(supervisor));
        found.put("host", supervisor.getHost());
        found.put("rack", racks.get(supervisor.getHost()));
        found.put("cpu", supervisor.getTotalCpu());
        found.put("memory_mb", supervisor.getTotalMemory());
        found.put("ports", new TreeSet<>(supervisor.getAllPorts()));
        found.put("used_ports", new TreeSet<>(cluster.getUsedPorts(supervisor)));
        found.put("blacklisted", cluster.isBlackListed(supervisor.getId()));
        return found;
    }

    private static Map<String, Object> topology(TopologyDetails topology, Cluster cluster) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("id", topology.getId());
        found.put("name", topology.getName());
        found.put("workers", topology.getNumWorkers());
        Map<String, Object> conf = new LinkedHashMap<>();
        SETTINGS.forEach(key -> {
            if (topology.getConf().get(key) != null) {
                conf.put(key, topology.getConf().get(key));
            }
        });
        found.put("conf", conf);
        found.put("components", components(topology));
        SchedulerAssignment assignment = cluster.getAssignmentById(topology.getId());
        Map<ExecutorDetails, WorkerSlot> now = assignment == null ? Map.of() : assignment.getExecutorToSlot();
        List<Object> executors = new ArrayList<>();
        Executors.byName(topology).forEach((name, executor) -> {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("name", name);
            row.put("first", executor.getStartTask());
            row.put("last", executor.getEndTask());
            row.put("cpu", topology.getTotalCpuReqTask(executor));
            row.put("memory_mb", topology.getTotalMemReqTask(executor));
            WorkerSlot slot = now.get(executor);
            if (slot != null) {
                row.put("supervisor", slot.getNodeId());
                row.put("port", slot.getPort());
            }
            executors.add(row);
        });
        found.put("executors", executors);
        return found;
    }

    private static Map<String, Object> components(TopologyDetails details) {
        Map<String, Object> found = new TreeMap<>();
        StormTopology topology = details.getTopology();
        if (topology == null) {
            return found;
        }
        topology.get_spouts().forEach((name, spout) -> found.put(name, component("spout", spout.get_common())));
        topology.get_bolts().forEach((name, bolt) -> found.put(name, component("bolt", bolt.get_common())));
        return found;
    }

    static Map<String, Object> component(String kind, ComponentCommon common) {
        List<Object> inputs = new ArrayList<>();
        if (common.get_inputs() != null) {
            new TreeMap<GlobalStreamId, Grouping>(common.get_inputs())
                .forEach((stream, grouping) -> inputs.add(input(stream, grouping)));
        }
        List<Object> streams = new ArrayList<>();
        if (common.get_streams() != null) {
            streams.addAll(new TreeSet<>(common.get_streams().keySet()));
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("kind", kind);
        found.put("streams", streams);
        found.put("inputs", inputs);
        return found;
    }

    private static Map<String, Object> input(GlobalStreamId stream, Grouping grouping) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("from", stream.get_componentId());
        found.put("stream", stream.get_streamId());
        // Storm's own way to say `global`: fields, and none of them.
        boolean global = grouping.is_set_fields() && grouping.get_fields().isEmpty();
        found.put("grouping", global ? "global" : grouping.getSetField().getFieldName());
        if (grouping.is_set_fields() && !global) {
            found.put("fields", grouping.get_fields());
        }
        return found;
    }
}
