package org.headrace.storm.referee;

import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import org.apache.storm.scheduler.INimbus;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.WorkerSlot;

/** What a cluster asks Nimbus for, where there is no Nimbus: the host of a supervisor. */
final class Alone implements INimbus {
    @Override
    public void prepare(Map<String, Object> conf, String folder) {
    }

    @Override
    public Collection<WorkerSlot> allSlotsAvailableForScheduling(
        Collection<SupervisorDetails> supervisors, Topologies topologies, Set<String> missing) {
        return Collections.emptySet();
    }

    @Override
    public void assignSlots(Topologies topologies,
                            Map<String, Collection<WorkerSlot>> slotsOfTopology) {
    }

    @Override
    public String getHostName(Map<String, SupervisorDetails> supervisors, String node) {
        SupervisorDetails supervisor = supervisors.get(node);
        return supervisor == null ? null : supervisor.getHost();
    }

    @Override
    public IScheduler getForcedScheduler() {
        return null;
    }
}
