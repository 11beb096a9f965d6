package org.headrace.storm;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.ClusterSummary;
import org.apache.storm.generated.ComponentPageInfo;
import org.apache.storm.generated.ExecutorAggregateStats;
import org.apache.storm.generated.ExecutorStats;
import org.apache.storm.generated.ExecutorSummary;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Nimbus;
import org.apache.storm.generated.NotAliveException;
import org.apache.storm.generated.SpoutSpec;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.generated.SupervisorSummary;
import org.apache.storm.generated.TopologyInfo;
import org.apache.storm.generated.TopologySummary;
import org.apache.storm.utils.NimbusClient;
import org.apache.storm.utils.Utils;

/**
 * All that Nimbus says over Thrift about a cluster and what runs on it, as one JSON object.
 *
 * <p>{@code NimbusReader HOST PORT}; it works without Storm's UI, and knows more than that: ports, global groupings,
 * the figures and the uptime of single executors.
 */
public final class NimbusReader {
    private static final String WINDOW = ":all-time";

    private NimbusReader() { }

    @SuppressWarnings("deprecation") // what took its place is not in 2.4
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2) {
            System.err.println("NimbusReader needs a host and a port");
            System.exit(2);
        }
        Map<String, Object> conf = Utils.readStormConfig();
        try (NimbusClient client = new NimbusClient(conf, arguments[0], Integer.parseInt(arguments[1]), 20_000)) {
            System.out.println(Json.write(read(client.getClient())));
        }
    }

    /** The keys `cluster`, `nimbus_conf`, `supervisors` and `topologies`. */
    public static Map<String, Object> read(Nimbus.Iface nimbus) throws Exception {
        ClusterSummary summary = nimbus.getClusterInfo();
        Map<String, Object> found = new LinkedHashMap<>();
        Map<String, Object> cluster = new LinkedHashMap<>();
        List<Object> leaders = new ArrayList<>();
        summary.get_nimbuses().forEach(one -> leaders.add(Map.of("host", one.get_host(), "port", one.get_port(),
            "leader", one.is_isLeader(), "uptime_s", one.get_uptime_secs(), "version", one.get_version())));
        cluster.put("nimbuses", leaders);
        found.put("cluster", cluster);
        found.put("nimbus_conf", Json.read(nimbus.getNimbusConf()));
        List<Object> supervisors = new ArrayList<>();
        for (SupervisorSummary one : summary.get_supervisors()) {
            supervisors.add(supervisor(one));
        }
        found.put("supervisors", supervisors);
        List<Object> topologies = new ArrayList<>();
        for (TopologySummary one : summary.get_topologies()) {
            try {
                topologies.add(topology(nimbus, one));
            } catch (NotAliveException ended) {
                continue; // while we were reading
            }
        }
        found.put("topologies", topologies);
        return found;
    }

    private static Map<String, Object> supervisor(SupervisorSummary one) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("id", one.get_supervisor_id());
        found.put("host", one.get_host());
        found.put("uptime_s", one.get_uptime_secs());
        found.put("slots", one.get_num_workers());
        found.put("used_slots", one.get_num_used_workers());
        found.put("version", one.get_version());
        found.put("resources", one.get_total_resources());
        found.put("used_cpu", one.get_used_cpu());
        found.put("used_memory_mb", one.get_used_mem());
        found.put("blacklisted", one.is_blacklisted());
        return found;
    }

    private static Map<String, Object> topology(Nimbus.Iface nimbus, TopologySummary one) throws Exception {
        String id = one.get_id();
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("id", id);
        found.put("name", one.get_name());
        found.put("status", one.get_status());
        found.put("scheduler_status", one.get_sched_status());
        found.put("uptime_s", one.get_uptime_secs());
        found.put("workers", one.get_num_workers());
        found.put("executors_total", one.get_num_executors());
        found.put("tasks_total", one.get_num_tasks());
        found.put("conf", Json.read(nimbus.getTopologyConf(id)));
        StormTopology topology = nimbus.getTopology(id); // with ackers and their streams
        found.put("topology", Map.of("components", components(topology)));
        TopologyInfo info = nimbus.getTopologyInfo(id);
        List<Object> executors = new ArrayList<>();
        for (ExecutorSummary executor : info.get_executors()) {
            executors.add(executor(executor));
        }
        found.put("executors", executors);
        Map<String, Object> pages = new TreeMap<>();
        for (String component : components(topology).keySet()) {
            if (!component.equals("__system")) {
                pages.put(component, page(nimbus.getComponentPageInfo(id, component, WINDOW, true)));
            }
        }
        found.put("component_pages", pages);
        return found;
    }

    private static Map<String, Object> components(StormTopology topology) {
        Map<String, Object> found = new TreeMap<>();
        for (Map.Entry<String, SpoutSpec> spout : topology.get_spouts().entrySet()) {
            found.put(spout.getKey(), State.component("spout", spout.getValue().get_common()));
        }
        for (Map.Entry<String, Bolt> bolt : topology.get_bolts().entrySet()) {
            found.put(bolt.getKey(), State.component("bolt", bolt.getValue().get_common()));
        }
        return found;
    }

    private static Map<String, Object> executor(ExecutorSummary one) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("component", one.get_component_id());
        found.put("first", one.get_executor_info().get_task_start());
        found.put("last", one.get_executor_info().get_task_end());
        found.put("host", one.get_host());
        found.put("port", one.get_port());
        found.put("uptime_s", one.get_uptime_secs());
        ExecutorStats stats = one.get_stats();
        if (stats != null) {
            found.put("emitted", stats.get_emitted().get(WINDOW));
            found.put("transferred", stats.get_transferred().get(WINDOW));
            if (stats.get_specific().is_set_bolt()) {
                found.put("executed", byInput(stats.get_specific().get_bolt().get_executed().get(WINDOW)));
                found.put("acked", byInput(stats.get_specific().get_bolt().get_acked().get(WINDOW)));
                found.put("execute_ms", byInput(stats.get_specific().get_bolt().get_execute_ms_avg().get(WINDOW)));
            } else if (stats.get_specific().is_set_spout()) {
                found.put("acked", stats.get_specific().get_spout().get_acked().get(WINDOW));
                found.put("failed", stats.get_specific().get_spout().get_failed().get(WINDOW));
                found.put("complete_ms", stats.get_specific().get_spout().get_complete_ms_avg().get(WINDOW));
            }
        }
        return found;
    }

    /** Figures per stream that comes in, called `component:stream`. */
    private static Map<String, Object> byInput(Map<GlobalStreamId, ? extends Number> figures) {
        Map<String, Object> found = new TreeMap<>();
        if (figures != null) {
            figures.forEach((stream, value) ->
                found.put(stream.get_componentId() + ":" + stream.get_streamId(), value));
        }
        return found;
    }

    private static Map<String, Object> page(ComponentPageInfo page) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("executors", page.get_num_executors());
        found.put("tasks", page.get_num_tasks());
        found.put("resources", page.get_resources_map());
        Map<String, Object> outputs = new TreeMap<>();
        if (page.is_set_sid_to_output_stats()) {
            page.get_sid_to_output_stats().forEach((stream, stats) -> outputs.put(stream, Map.of(
                "emitted", stats.get_common_stats().get_emitted(),
                "transferred", stats.get_common_stats().get_transferred())));
        }
        found.put("outputs", outputs);
        Map<String, Object> inputs = new TreeMap<>();
        if (page.is_set_gsid_to_input_stats()) {
            page.get_gsid_to_input_stats().forEach((stream, stats) -> inputs.put(
                stream.get_componentId() + ":" + stream.get_streamId(), Map.of(
                    "executed", stats.get_specific_stats().get_bolt().get_executed(),
                    "execute_ms", stats.get_specific_stats().get_bolt().get_execute_latency_ms())));
        }
        found.put("inputs", inputs);
        List<Object> executors = new ArrayList<>();
        if (page.is_set_exec_stats()) {
            for (ExecutorAggregateStats one : page.get_exec_stats()) {
                ExecutorSummary summary = one.get_exec_summary();
                executors.add(Map.of("first", summary.get_executor_info().get_task_start(),
                    "last", summary.get_executor_info().get_task_end(), "host", summary.get_host(),
                    "port", summary.get_port(), "uptime_s", summary.get_uptime_secs(),
                    "emitted", one.get_stats().get_common_stats().get_emitted(),
                    "transferred", one.get_stats().get_common_stats().get_transferred()));
            }
        }
        found.put("executor_stats", executors);
        return found;
    }
}
