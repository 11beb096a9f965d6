package org.headrace.storm;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts the plans of Headrace into force: all executors of a topology or none.
 *
 * <p>In Nimbus' {@code storm.yaml}:
 * <pre>
 * storm.scheduler: org.headrace.storm.HeadraceScheduler
 * headrace.address: http://127.0.0.1:7274   # of `headrace storm serve`, or
 * headrace.plans: /etc/headrace/plans       # a folder of plan files
 * headrace.timeout.secs: 20                 # so long a topology waits for a plan
 * headrace.fallback: org.apache.storm.scheduler.DefaultScheduler
 * headrace.folder: /var/storm/headrace      # keeps the plans in force; under storm.local.dir by default
 * headrace.calm.secs: 15                    # so long a topology that was moved is not moved again
 * </pre>
 */
public final class HeadraceScheduler implements IScheduler {
    private static final Logger LOG = LoggerFactory.getLogger(HeadraceScheduler.class);

    private IScheduler fallback;
    private Source source;
    private Cache cache;
    private int limitSecs;
    private int calmSecs;
    /** When a topology last got other slots, in milliseconds. */
    private final Map<String, Long> moved = new HashMap<>();
    /** Since when a topology has executors without a place and no plan, in milliseconds. */
    private final Map<String, Long> waiting = new HashMap<>();
    private final Map<String, String> said = new HashMap<>();

    @Override
    public void prepare(Map<String, Object> conf, StormMetricsRegistry metrics) {
        limitSecs = seconds(conf, "headrace.timeout.secs", 20, 1);
        calmSecs = seconds(conf, "headrace.calm.secs", 15, 0);
        Object address = conf.get("headrace.address");
        Object plans = conf.get("headrace.plans");
        if ((address == null) == (plans == null)) {
            throw new IllegalArgumentException(
                "storm.yaml needs one of headrace.address (a service) and headrace.plans (a folder of plan files)");
        }
        source = address != null
            ? new Service(String.valueOf(address), limitSecs) : new Folder(Path.of(String.valueOf(plans)));
        String name = String.valueOf(conf.getOrDefault("headrace.fallback", DefaultScheduler.class.getName()));
        try {
            fallback = (IScheduler) Class.forName(name).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | ClassCastException error) {
            throw new IllegalArgumentException("headrace.fallback: " + name + " is no scheduler: " + error);
        }
        fallback.prepare(conf, metrics);
        Object folder = conf.get("headrace.folder");
        if (folder == null) {
            folder = conf.getOrDefault("storm.local.dir", "storm-local") + "/headrace";
        }
        cache = new Cache(source, Path.of(String.valueOf(folder), "plans-in-force.json"));
        LOG.info("plans come from {}; {} is the fallback", source.describe(), name);
    }

    private static int seconds(Map<String, Object> conf, String name, int otherwise, int least) {
        Object value = conf.getOrDefault(name, otherwise);
        if (value instanceof Number && ((Number) value).intValue() >= least) {
            return ((Number) value).intValue();
        }
        throw new IllegalArgumentException(name + " is " + value + "; it needs seconds, " + least + " or more");
    }

    @Override
    public void schedule(Topologies topologies, Cluster cluster) {
        Plans plans = cache.newest();
        Layout layout = new Layout(cluster);
        Map<String, String> reasons = new HashMap<>();
        Map<String, Plan> chosen = new TreeMap<>();
        Map<String, Map<String, Map<Integer, Set<ExecutorDetails>>>> wanted = new TreeMap<>();
        for (TopologyDetails topology : topologies.getTopologies()) {
            choose(topology, plans, layout, chosen, wanted, reasons);
        }
        Map<String, Layout.Refusal> refused = new HashMap<>();
        Map<String, Map<WorkerSlot, Set<ExecutorDetails>>> slots = layout.slots(wanted, refused);
        refused.forEach((id, refusal) -> {
            reasons.put(id, chosen.remove(id).name() + " cannot be put into force: " + refusal.getMessage());
        });
        layout.apply(slots).forEach(id -> moved.put(id, System.currentTimeMillis()));
        slots.forEach((id, workers) -> {
            long nodes = workers.keySet().stream().map(WorkerSlot::getNodeId).distinct().count();
            String note = reasons.containsKey(id) ? "; " + reasons.get(id) : "";
            say(cluster, topologies.getById(id), "Headrace: " + chosen.get(id).name() + " is in force, "
                + topologies.getById(id).getExecutors().size() + " executors in " + workers.size() + " workers on "
                + nodes + " nodes" + note);
        });
        boolean waits = placeOthers(topologies, cluster, layout, chosen, plans, reasons);
        cache.keep(chosen, topologies.getAllIds());
        waiting.keySet().retainAll(topologies.getAllIds());
        moved.keySet().retainAll(topologies.getAllIds());
        said.keySet().retainAll(topologies.getAllIds());
        cache.look(State.of(topologies, cluster), waits || plans.trouble() != null);
    }

    /** The newest plan that fits, else the one in force before; or why there is none. */
    private void choose(
        TopologyDetails topology,
        Plans plans,
        Layout layout,
        Map<String, Plan> chosen,
        Map<String, Map<String, Map<Integer, Set<ExecutorDetails>>>> wanted,
        Map<String, String> reasons) {
        String id = topology.getId();
        Plan newest = plans.of(id, topology.getName());
        Plan before = cache.inForce(id);
        String refusal = plans.refusal(id, topology.getName());
        if (newest == null) {
            reasons.put(id, refusal != null ? refusal
                : plans.trouble() != null ? source.describe() + ": " + plans.trouble()
                : source.describe() + " has no plan for it");
        } else if (plans.trouble() != null) {
            reasons.put(id, source.describe() + ": " + plans.trouble());
        }
        // A supervisor of Storm 2.8 ends if a worker that is still fetching its code gets another assignment.
        long calmUntil = moved.getOrDefault(id, 0L) + calmSecs * 1000L;
        boolean calm = before != null && System.currentTimeMillis() < calmUntil && layout.isComplete(topology);
        for (Plan plan : calm ? new Plan[] {before, newest} : new Plan[] {newest, before}) {
            if (plan == null) {
                continue;
            }
            try {
                wanted.put(id, layout.workers(topology, plan));
                chosen.put(id, plan);
                return;
            } catch (Layout.Refusal error) {
                reasons.put(id, plan.name() + " cannot be put into force: " + error.getMessage());
            }
        }
    }

    /** Topologies without a plan: those that run go on, others wait for a plan and then get the fallback. */
    private boolean placeOthers(
        Topologies topologies,
        Cluster cluster,
        Layout layout,
        Map<String, Plan> chosen,
        Plans plans,
        Map<String, String> reasons) {
        Map<String, TopologyDetails> visible = new LinkedHashMap<>();
        boolean waits = false;
        long now = System.currentTimeMillis();
        for (TopologyDetails topology : topologies.getTopologies()) {
            String id = topology.getId();
            if (chosen.containsKey(id)) {
                waiting.remove(id);
            } else if (cache.inForce(id) != null && layout.isComplete(topology)) {
                waiting.remove(id);
                say(cluster, topology, "Headrace: it stays where it is; " + reasons.get(id));
                waits = true;
            } else {
                long since = waiting.computeIfAbsent(id, i -> now);
                boolean refused = plans.refusal(id, topology.getName()) != null;
                boolean placed = layout.isComplete(topology);
                if (!refused && !placed && now - since < limitSecs * 1000L) {
                    say(cluster, topology, "Headrace: waiting for a plan");
                } else {
                    visible.put(id, topology);
                }
                waits = waits || !refused;
            }
        }
        if (!visible.isEmpty()) {
            View view = new View(cluster, visible);
            fallback.schedule(new Topologies(visible), view);
            cluster.updateFrom(view);
            visible.forEach((id, topology) -> {
                String own = view.getStatus(id); // the resource-aware scheduler says what it lacks
                String note = own == null || own.isEmpty() || own.startsWith("Headrace") ? "" : " (" + own + ")";
                say(cluster, topology, "Headrace: placed by " + fallback.getClass().getSimpleName()
                    + ", since " + reasons.get(id) + note);
            });
        }
        return waits;
    }

    private void say(Cluster cluster, TopologyDetails topology, String text) {
        cluster.setStatus(topology.getId(), text);
        if (!text.equals(said.put(topology.getId(), text))) {
            LOG.info("{}: {}", topology.getId(), text);
        }
    }

    @Override
    public Map<String, Map<String, Double>> config() {
        return Map.of();
    }

    @Override
    public void nodeAssignmentSent(String node, boolean successful) {
        fallback.nodeAssignmentSent(node, successful);
    }

    @Override
    public void cleanup() {
        if (cache != null) {
            cache.close();
        }
        if (fallback != null) {
            fallback.cleanup();
        }
    }
}
