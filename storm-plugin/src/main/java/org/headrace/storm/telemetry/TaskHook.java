package org.headrace.storm.telemetry;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
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
 * headrace.telemetry.sample: 200      # the size of every so many tuples is taken, of fewer on busy streams; 0: of none
 * </pre>
 */
public final class TaskHook extends BaseTaskHook {
    /** What Netty and Storm add to the values: task and length (6), source and stream (about 3), anchors (1). */
    private static final int FRAME_BYTES = 10;
    private static final int ANCHOR_BYTES = 16;

    /** A size is taken at most about once in so long: on a busy stream that is enough, and serialising costs. */
    private static final long SAMPLE_NANOS = 20_000_000;

    /** How many of the newest samples tell how long serialising takes. */
    private static final int NEWEST = 64;

    /**
     * A row of counters. Nearly always the executor's own thread counts, which needs no lock and no fence; an author
     * may emit on other threads too, and those count beside it. Free room on both sides keeps rows of different
     * executors out of one cache line, which their cores would take from each other at every tuple.
     */
    static final class Counts {
        private static final VarHandle OWN = MethodHandles.arrayElementVarHandle(long[].class);
        private static final int ROOM = 8; // longs: a cache line
        private final long[] own;
        private final AtomicLongArray others;

        Counts(int length) {
            own = new long[length + 2 * ROOM];
            others = new AtomicLongArray(length);
        }

        void add(int i, long count, boolean byOwner) {
            if (byOwner) {
                OWN.setRelease(own, i + ROOM, own[i + ROOM] + count);
            } else {
                others.getAndAdd(i, count);
            }
        }

        long get(int i) {
            return (long) OWN.getAcquire(own, i + ROOM) + others.get(i);
        }

        int length() {
            return others.length();
        }
    }

    /** What went over one stream. */
    static final class Sent {
        private static final int COPIES = 0;
        private static final int FIRST = 2; // task numbers are shifted: -1 is Storm's own
        private final Counts counts; // tuples sent more than once, then all by task
        final boolean system;
        final boolean anchored;
        volatile long sampled;
        volatile long sampledBytes;
        private final long[] nanos = new long[NEWEST];
        private int timed;
        private int every;
        private int next;
        private long lastNanos;

        Sent(int tasks, int every, boolean system, boolean acked) {
            counts = new Counts(FIRST + tasks);
            this.every = every;
            this.system = system;
            anchored = acked && !system;
        }

        /** One above the largest number of a task. */
        int tasks() {
            return counts.length() - FIRST;
        }

        long to(int task) {
            return counts.get(FIRST + task);
        }

        long emitted() {
            long sent = -counts.get(COPIES);
            for (int task = -1; task < tasks(); task++) {
                sent += to(task);
            }
            return sent;
        }

        double meanBytes() {
            return sampled == 0 ? 0 : (double) sampledBytes / sampled;
        }

        private synchronized void addTime(long took) {
            nanos[timed++ % NEWEST] = took;
        }

        /**
         * The median time to serialise a tuple, of the samples since the last call, or 0: in a mean there would be the
         * time of other threads, and of the garbage collector.
         */
        synchronized long medianNanos() {
            long[] sorted = Arrays.copyOf(nanos, Math.min(timed, NEWEST));
            timed = 0;
            Arrays.sort(sorted);
            return sorted.length == 0 ? 0 : sorted[sorted.length / 2];
        }

        /** Let more tuples pass before the next where they come quickly, fewer where they do not. */
        private void waitForNext(int least) {
            long now = System.nanoTime();
            if (now - lastNanos < SAMPLE_NANOS) {
                every = Math.min(2 * every, 1 << 20);
            } else if (now - lastNanos > 4 * SAMPLE_NANOS) {
                every = Math.max(every / 2, least);
            }
            lastNanos = now;
            next = every - 1;
        }
    }

    private record Last(String stream, Sent sent) { }

    private final Map<String, Sent> sent = new ConcurrentHashMap<>();
    private final Counts executed = new Counts(1);
    volatile Thread thread;
    private Writer writer;
    private KryoValuesSerializer serializer;
    private int sample;
    private int tasks;
    private boolean acked;
    private boolean spout;
    private Last last = new Last("", null);
    private Last other = last; // tuples and acks take turns

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context) {
        if (context.getThisTaskId() < 0 || conf.get("headrace.telemetry.folder") == null) {
            return;
        }
        sample = Writer.number(conf, "headrace.telemetry.sample", 200);
        serializer = sample > 0 ? new KryoValuesSerializer(conf) : null;
        tasks = 1 + context.getTaskToComponent().keySet().stream().mapToInt(Integer::intValue).max().orElse(0);
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

    long executed() {
        return executed.get(0);
    }

    long emitted() {
        return sent.values().stream().filter(s -> !s.system).mapToLong(Sent::emitted).sum();
    }

    @Override
    public void emit(EmitInfo info) {
        if (writer == null) {
            return;
        }
        Sent here = sentOver(info.stream);
        if (spout && thread == null && !here.system) {
            thread = Thread.currentThread();
        }
        boolean own = Thread.currentThread() == thread;
        int copies = 0;
        for (Integer task : info.outTasks) { // null where nobody takes a direct stream
            if (task != null && task < tasks) {
                here.counts.add(Sent.FIRST + task, 1, own);
                copies++;
            }
        }
        if (copies != 1) { // mostly a tuple goes to one task, and one count is enough
            here.counts.add(Sent.COPIES, copies - 1, own);
        }
        if (copies > 0 && sample > 0 && --here.next < 0) {
            here.waitForNext(sample);
            measure(here, info.values);
        }
    }

    private Sent sentOver(String stream) {
        Last known = last; // one object, since an author may emit on several threads
        if (known.stream().equals(stream)) {
            return known.sent();
        }
        Last second = other;
        if (second.stream().equals(stream)) {
            return second.sent();
        }
        Sent found = sent.computeIfAbsent(stream, s -> new Sent(tasks, sample, s.startsWith("__"), acked));
        other = known;
        last = new Last(stream, found);
        return found;
    }

    /** The size on the network as Storm's own serialiser has it, and how long it takes. */
    private synchronized void measure(Sent here, List<Object> values) {
        try {
            long began = System.nanoTime();
            int size = serializer.serializeObject(values).length;
            here.addTime(System.nanoTime() - began);
            here.sampledBytes += size + FRAME_BYTES + (here.anchored ? ANCHOR_BYTES : 0);
            here.sampled++;
        } catch (RuntimeException error) {
            sample = 0; // what cannot be serialised never leaves its worker
        }
    }

    @Override
    public void boltExecute(BoltExecuteInfo info) {
        if (writer != null) {
            if (thread == null) {
                thread = Thread.currentThread();
            }
            executed.add(0, 1, Thread.currentThread() == thread);
        }
    }

    @Override
    public void cleanup() {
        if (writer != null) {
            writer.write();
        }
    }
}
