package org.headrace.storm.telemetry;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.storm.task.TopologyContext;
import org.headrace.storm.Json;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The one writer of a worker: every few seconds a file of what its tasks did since the file before. */
final class Writer {
    private static final Logger LOG = LoggerFactory.getLogger(Writer.class);
    private static final Map<String, Writer> WRITERS = new HashMap<>();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final Pattern EXECUTOR = Pattern.compile("Thread-\\d+-(.+)-executor\\[(\\d+), (\\d+)\\]");
    private static final String TRANSFER = "Worker-Transfer";
    private static final int VERSION = 1;

    private final String topology;
    private final String node;
    private final String machineType;
    private final Path folder;
    private final String name;
    private final Map<Integer, String> names = new HashMap<>();
    private final Map<Integer, String> components;
    private final Map<Integer, TaskHook> hooks = new ConcurrentHashMap<>();
    private final Map<String, Long> before = new HashMap<>();
    private final int port;
    private long writtenMs = System.currentTimeMillis();
    private int number;

    /** The writer of this worker; a local cluster has several workers in one process. */
    static synchronized Writer of(Map<String, Object> conf, TopologyContext context) {
        String key = context.getStormId() + "-" + context.getThisWorkerPort();
        return WRITERS.computeIfAbsent(key, k -> new Writer(conf, context, k));
    }

    static int number(Map<String, Object> conf, String name, int otherwise) {
        Object value = conf.get(name);
        return value instanceof Number ? ((Number) value).intValue() : otherwise;
    }

    private Writer(Map<String, Object> conf, TopologyContext context, String key) {
        String id = context.getStormId();
        topology = String.valueOf(conf.getOrDefault("topology.name", id.replaceAll("-\\d+-\\d+$", "")));
        node = nodeOf(conf);
        machineType = String.valueOf(conf.getOrDefault("headrace.machine.type", ""));
        folder = Path.of(String.valueOf(conf.get("headrace.telemetry.folder")));
        // The time first: files are read in the order of their names.
        name = Long.toString(System.currentTimeMillis(), 36) + "-" + node + "-" + key;
        port = context.getThisWorkerPort();
        components = new TreeMap<>(context.getTaskToComponent());
        Map<String, Integer> counts = new HashMap<>();
        components.forEach((task, component) ->
            names.put(task, component + "." + counts.merge(component, 1, Integer::sum)));
        int seconds = number(conf, "headrace.telemetry.secs", 10);
        Thread thread = new Thread(() -> keepWriting(seconds * 1000L), "headrace-telemetry");
        thread.setDaemon(true);
        thread.start();
        Runtime.getRuntime().addShutdownHook(new Thread(this::write, "headrace-telemetry-end"));
    }

    private static String nodeOf(Map<String, Object> conf) {
        for (String key : List.of("headrace.node", "storm.local.hostname")) {
            if (conf.get(key) != null) {
                return String.valueOf(conf.get(key));
            }
        }
        try {
            return InetAddress.getLocalHost().getCanonicalHostName();
        } catch (IOException error) {
            return "unknown";
        }
    }

    /** Take a task in; one of the same number, of a worker before in the same process, is finished first. */
    synchronized void add(int task, TaskHook hook) {
        if (hooks.containsKey(task)) {
            write();
            before.keySet().removeIf(key -> key.matches("(in|out|sent|timed) " + task + "( .*)?"));
        }
        hooks.put(task, hook);
    }

    private void keepWriting(long everyMs) {
        while (true) {
            try {
                // At whole multiples, so that files of different workers are of the same times.
                Thread.sleep(everyMs - System.currentTimeMillis() % everyMs);
            } catch (InterruptedException end) {
                return;
            }
            write();
        }
    }

    /** Write down what happened since the last time. */
    synchronized void write() {
        String now = Instant.ofEpochMilli(System.currentTimeMillis()).toString();
        List<Map<String, Object>> tasks = new ArrayList<>();
        List<Map<String, Object>> edges = new ArrayList<>();
        Map<Thread, Double> cpu = new HashMap<>();
        Map<Thread, Long> executed = new HashMap<>();
        Map<Thread, Integer> sharers = new HashMap<>();
        Map<Integer, long[]> done = new TreeMap<>();
        hooks.forEach((task, hook) -> {
            if (hook.thread == null) {
                hook.thread = executorThread(components.get(task), task);
            }
            long in = since("in " + task, hook.executed());
            long out = since("out " + task, hook.emitted());
            done.put(task, new long[] {in, out});
            if (hook.thread != null) {
                executed.merge(hook.thread, in + out, Long::sum);
                sharers.merge(hook.thread, 1, Integer::sum);
            }
        });
        done.forEach((task, counts) -> {
            TaskHook hook = hooks.get(task);
            Thread thread = hook.thread;
            double spent = 0;
            if (thread != null) {
                // Tasks that share a thread share its time by what they did, and its waiting evenly.
                double ms = cpu.computeIfAbsent(thread, this::spentMs);
                long all = executed.get(thread);
                spent = all == 0 ? ms / sharers.get(thread) : ms * (counts[0] + counts[1]) / all;
            }
            tasks.add(taskRow(now, task, counts, spent));
            edges.addAll(edgeRows(now, task, hook));
        });
        store("tasks", tasks);
        store("edges", edges);
        store("workers", List.of(workerRow(now)));
        number++;
    }

    /**
     * The thread of an executor that has not done anything yet: waiting for tuples takes CPU too. None if there are
     * several of that name, as where topologies share a process.
     */
    private static Thread executorThread(String component, int task) {
        ThreadGroup all = Thread.currentThread().getThreadGroup();
        while (all.getParent() != null) {
            all = all.getParent();
        }
        Thread[] threads = new Thread[2 * all.activeCount()];
        Thread found = null;
        for (int i = all.enumerate(threads) - 1; i >= 0; i--) {
            if (runs(threads[i].getName(), component, task)) {
                if (found != null) {
                    return null;
                }
                found = threads[i];
            }
        }
        return found;
    }

    /** Whether a thread of this name is the executor of a task, as Storm 2 calls them. */
    static boolean runs(String thread, String component, int task) {
        Matcher name = EXECUTOR.matcher(thread);
        return name.matches() && name.group(1).equals(component)
            && Integer.parseInt(name.group(2)) <= task && task <= Integer.parseInt(name.group(3));
    }

    /** What this worker spent on messages to and from others: executors' own threads do not see it. */
    private Map<String, Object> workerRow(String now) {
        double ms = 0;
        double transfer = 0;
        for (ThreadInfo thread : THREADS.getThreadInfo(THREADS.getAllThreadIds())) {
            if (thread != null && carriesMessages(thread.getThreadName())) {
                long nanos = THREADS.getThreadCpuTime(thread.getThreadId());
                double spent = nanos < 0 ? 0 : since("messages " + thread.getThreadId(), nanos) / 1e6;
                ms += spent;
                transfer += thread.getThreadName().equals(TRANSFER) ? spent : 0;
            }
        }
        long nowMs = System.currentTimeMillis();
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("version", VERSION);
        row.put("event_time", now);
        row.put("topology", topology);
        row.put("node", node);
        row.put("port", port);
        row.put("seconds", (nowMs - writtenMs) / 1000.0);
        row.put("messaging_ms", ms);
        row.put("transfer_ms", transfer);
        row.put("serialised", serialised());
        writtenMs = nowMs;
        return row;
    }

    /** By component: tuples sent, and milliseconds that serialising all of them would take an executor's thread. */
    private Map<String, List<Double>> serialised() {
        Map<String, List<Double>> found = new TreeMap<>();
        hooks.forEach((task, hook) -> hook.streams().forEach((stream, sent) -> {
            double count = since("timed " + task + " " + stream, sent.emitted());
            long each = sent.medianNanos();
            if (count > 0 && each > 0) {
                found.merge(components.get(task), List.of(count, count * each / 1e6),
                    (a, b) -> List.of(a.get(0) + b.get(0), a.get(1) + b.get(1)));
            }
        }));
        return found;
    }

    /** Threads that send, and that receive and deserialise, as Storm 2 calls them. */
    static boolean carriesMessages(String thread) {
        return thread.equals(TRANSFER) || thread.startsWith("client-worker")
            || thread.startsWith("Netty-server") && thread.contains("-worker");
    }

    private double spentMs(Thread thread) {
        long nanos = THREADS.getThreadCpuTime(thread.getId());
        return nanos < 0 ? 0 : since("cpu " + thread.getId(), nanos) / 1e6;
    }

    private long since(String name, long value) {
        Long last = before.put(name, value);
        return value - (last == null ? 0 : last);
    }

    private Map<String, Object> taskRow(String now, int task, long[] counts, double cpuMs) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("version", VERSION);
        row.put("event_time", now);
        row.put("arrival", now);
        row.put("topology", topology);
        row.put("task", names.get(task));
        row.put("component", components.get(task));
        row.put("node", node);
        row.put("machine_type", machineType);
        row.put("tuples_in", counts[0]);
        row.put("tuples_out", counts[1]);
        row.put("cpu_ms", cpuMs);
        row.put("queue_length", 0);
        row.put("memory_mb", 0.0);
        return row;
    }

    private List<Map<String, Object>> edgeRows(String now, int task, TaskHook hook) {
        Map<Integer, long[]> byTarget = new TreeMap<>();
        hook.streams().forEach((stream, sent) -> {
            for (int target = 0; target < sent.tasks(); target++) {
                long count = sent.to(target);
                if (count > 0) {
                    long fresh = since("sent " + task + " " + stream + " " + target, count);
                    long[] sums = byTarget.computeIfAbsent(target, t -> new long[2]);
                    sums[0] += fresh;
                    sums[1] += Math.round(fresh * sent.meanBytes());
                }
            }
        });
        List<Map<String, Object>> rows = new ArrayList<>();
        byTarget.forEach((target, sums) -> {
            if (sums[0] > 0 && names.containsKey(target)) {
                Map<String, Object> row = new LinkedHashMap<>();
                row.put("version", VERSION);
                row.put("event_time", now);
                row.put("arrival", now);
                row.put("topology", topology);
                row.put("from_task", names.get(task));
                row.put("to_task", names.get(target));
                row.put("tuples", sums[0]);
                row.put("bytes", sums[1]);
                rows.add(row);
            }
        });
        return rows;
    }

    private void store(String kind, List<Map<String, Object>> rows) {
        if (rows.isEmpty()) {
            return;
        }
        StringBuilder lines = new StringBuilder();
        rows.forEach(row -> lines.append(Json.write(row)).append('\n'));
        String file = String.format("%s-%06d.jsonl", name, number);
        try {
            Files.createDirectories(folder.resolve(kind));
            Path draft = folder.resolve(kind).resolve("." + file);
            Files.writeString(draft, lines);
            Files.move(draft, folder.resolve(kind).resolve(file), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            LOG.warn("telemetry cannot be written to {}: {}", folder, error.toString());
        }
    }
}
