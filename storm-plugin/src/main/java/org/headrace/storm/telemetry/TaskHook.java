package org.headrace.storm.telemetry;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import org.apache.storm.hooks.BaseTaskHook;
import org.apache.storm.hooks.info.BoltExecuteInfo;
import org.apache.storm.hooks.info.EmitInfo;
import org.apache.storm.serialization.KryoValuesSerializer;
import org.apache.storm.task.TopologyContext;

/**
 * Counts what a task sends to every other task, and lets the worker's writer see the thread that it runs on.
 *
 * <p>In the supervisors' {@code storm.yaml}:
 * <pre>
 * topology.auto.task.hooks: [org.headrace.storm.telemetry.TaskHook]
 * headrace.telemetry.folder: /var/storm/headrace/telemetry   # absent: nothing is counted
 * headrace.telemetry.secs: 10
 * headrace.telemetry.sample: 200      # the size of every so many tuples is taken; 0: of none
 * </pre>
 */
public final class TaskHook extends BaseTaskHook {
    /** What Netty and Storm add to the values: task and length (6), source and stream (about 3), anchors (1). */
    private static final int FRAME_BYTES = 10;
    private static final int ANCHOR_BYTES = 16;

    /** What went over one stream. */
    static final class Sent {
        final AtomicLongArray byTask; // shifted by one: -1 is Storm's own
        final boolean anchored;
        volatile long sampled;
        volatile long sampledBytes;
        private int next;

        Sent(int tasks, boolean anchored) {
            byTask = new AtomicLongArray(tasks);
            this.anchored = anchored;
        }

        double meanBytes() {
            return sampled == 0 ? 0 : (double) sampledBytes / sampled;
        }
    }

    private record Last(String stream, Sent sent) { }

    private final Map<String, Sent> sent = new ConcurrentHashMap<>();
    final LongAdder executed = new LongAdder();
    final LongAdder emitted = new LongAdder();
    volatile Thread thread;
    private Writer writer;
    private KryoValuesSerializer serializer;
    private int sample;
    private int tasks;
    private boolean acked;
    private boolean spout;
    private Last last = new Last("", null);

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context) {
        if (context.getThisTaskId() < 0 || conf.get("headrace.telemetry.folder") == null) {
            return;
        }
        sample = Writer.number(conf, "headrace.telemetry.sample", 200);
        serializer = sample > 0 ? new KryoValuesSerializer(conf) : null;
        tasks = 2 + context.getTaskToComponent().keySet().stream().mapToInt(Integer::intValue).max().orElse(0);
        acked = Writer.number(conf, "topology.acker.executors", 1) > 0;
        spout = context.getRawTopology().get_spouts().containsKey(context.getThisComponentId());
        writer = Writer.of(conf, context);
        writer.add(context.getThisTaskId(), this);
    }

    boolean isSpout() {
        return spout;
    }

    Map<String, Sent> streams() {
        return sent;
    }

    @Override
    public void emit(EmitInfo info) {
        if (writer == null) {
            return;
        }
        Sent here = sentOver(info.stream);
        boolean any = false;
        for (Integer task : info.outTasks) {
            if (task != null && task + 1 < tasks) {
                here.byTask.getAndIncrement(task + 1);
                any = true;
            }
        }
        if (!info.stream.startsWith("__")) {
            emitted.increment();
            if (spout && thread == null) {
                thread = Thread.currentThread();
            }
        }
        if (any && sample > 0 && --here.next < 0) {
            here.next = sample - 1;
            measure(here, info.values);
        }
    }

    private Sent sentOver(String stream) {
        Last known = last; // mostly the same stream again; one object, since an author may emit on several threads
        if (known.stream().equals(stream)) {
            return known.sent();
        }
        Sent found = sent.computeIfAbsent(stream, s -> new Sent(tasks, acked && !s.startsWith("__")));
        last = new Last(stream, found);
        return found;
    }

    /** The size on the network as Storm's own serialiser has it. */
    private synchronized void measure(Sent here, List<Object> values) {
        try {
            int size = serializer.serializeObject(values).length;
            here.sampledBytes += size + FRAME_BYTES + (here.anchored ? ANCHOR_BYTES : 0);
            here.sampled++;
        } catch (RuntimeException error) {
            sample = 0; // what cannot be serialised never leaves its worker
        }
    }

    @Override
    public void boltExecute(BoltExecuteInfo info) {
        if (writer != null) {
            executed.increment();
            if (thread == null) {
                thread = Thread.currentThread();
            }
        }
    }

    @Override
    public void cleanup() {
        if (writer != null) {
            writer.write();
        }
    }
}
