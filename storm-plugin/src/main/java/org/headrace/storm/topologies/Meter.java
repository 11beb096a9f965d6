package org.headrace.storm.topologies;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.storm.task.TopologyContext;
import org.headrace.storm.Json;

/**
 * What a task counts about itself, in a file that is written again every second.
 *
 * <p>These are the topology's own counters: they know nothing of hooks or of Storm's statistics, and are what both are
 * compared with.
 */
final class Meter {
    private static final long EVERY_MS = 1000;
    private static final double STEP = 1.05; // of two neighbouring classes of latency

    private final Path file;
    private final String task;
    private final Map<Integer, LongAdder> received = new ConcurrentHashMap<>();
    private final Map<Integer, LongAdder> latencies = new ConcurrentHashMap<>();
    private final LongAdder emitted = new LongAdder();
    private final LongAdder acked = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final LongAdder latencyNanos = new LongAdder();
    private final Thread thread;

    Meter(String folder, TopologyContext context) {
        task = context.getThisComponentId() + "." + (context.getThisTaskIndex() + 1);
        // A worker that starts again begins at 0: a file of its own.
        String name = context.getStormId() + "-" + context.getThisTaskId() + "-" + System.currentTimeMillis() + ".json";
        file = folder.isEmpty() ? null : Path.of(folder, name);
        thread = new Thread(this::keepWriting, "meter-" + task);
        thread.setDaemon(true);
        if (file != null) {
            thread.start();
        }
    }

    void emit() {
        emitted.increment();
    }

    void receive(int fromTask) {
        received.computeIfAbsent(fromTask, t -> new LongAdder()).increment();
    }

    void ack(long nanos) {
        acked.increment();
        latencyNanos.add(nanos);
        int level = (int) Math.floor(Math.log(Math.max(nanos / 1000.0, 1)) / Math.log(STEP));
        latencies.computeIfAbsent(level, l -> new LongAdder()).increment();
    }

    void fail() {
        failed.increment();
    }

    void close() {
        thread.interrupt();
        if (file != null) {
            write();
        }
    }

    private void keepWriting() {
        while (!thread.isInterrupted()) {
            try {
                Thread.sleep(EVERY_MS);
            } catch (InterruptedException end) {
                return;
            }
            write();
        }
    }

    private synchronized void write() {
        Map<String, Object> content = new LinkedHashMap<>();
        content.put("task", task);
        content.put("at_ms", System.currentTimeMillis());
        content.put("emitted", emitted.sum());
        content.put("acked", acked.sum());
        content.put("failed", failed.sum());
        content.put("latency_ms_sum", latencyNanos.sum() / 1e6);
        Map<String, Object> from = new TreeMap<>();
        received.forEach((source, count) -> from.put(String.valueOf(source), count.sum()));
        content.put("received", from);
        Map<Integer, Object> levels = new TreeMap<>();
        latencies.forEach((level, count) -> levels.put(level, count.sum()));
        content.put("latency_levels", levels); // level -> count: from 1.05^level microseconds on
        try {
            Files.createDirectories(file.getParent());
            Path draft = file.resolveSibling("." + file.getFileName());
            Files.writeString(draft, Json.write(content));
            Files.move(draft, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }
}
