package org.headrace.storm;

import java.util.Map;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;

/**
 * The cluster as the fallback sees it: some topologies only, and the slots of the others in use.
 *
 * <p>A topology with fewer workers than it asked for needs scheduling in Storm's eyes: were the planned ones visible,
 * the fallback would divide them again in every round.
 */
final class View extends Cluster {
    private final Topologies visible;

    View(Cluster cluster, Map<String, TopologyDetails> visible) {
        super(cluster);
        this.visible = new Topologies(visible);
    }

    @Override
    public Topologies getTopologies() {
        return visible == null ? super.getTopologies() : visible; // null while Cluster makes itself
    }

    @Override
    public boolean needsScheduling(TopologyDetails topology) {
        return visible.getById(topology.getId()) != null && super.needsScheduling(topology);
    }

    @Override
    public boolean needsSchedulingRas(TopologyDetails topology) {
        return visible.getById(topology.getId()) != null && super.needsSchedulingRas(topology);
    }
}
