package org.headrace.storm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Plans that are at hand at any time, fetched by a thread of their own: Nimbus' timer thread never waits.
 *
 * <p>The plans that were put into force are on disk as well, so that they stay while Headrace is away and Nimbus starts
 * again.
 */
final class Cache implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Cache.class);
    private static final long AGAIN_MS = 1000; // while a topology has no plan, or the source is in trouble

    private final Source source;
    private final Path file;
    private final Thread thread;
    private volatile Plans newest = Plans.NONE;
    private volatile boolean open = true;
    private volatile boolean waited;
    private Map<String, Object> state;
    private final Map<String, Plan> inForce = new LinkedHashMap<>();
    private String onDisk = "";

    Cache(Source source, Path file) {
        this.source = source;
        this.file = file;
        load();
        thread = new Thread(this::fetch, "headrace-plans");
        thread.setDaemon(true);
        thread.start();
    }

    /** Have the source asked about a state, soon; `eager`: again and again, as a topology waits for a plan. */
    synchronized void look(Map<String, Object> newState, boolean eager) {
        state = newState;
        waited = eager;
        notifyAll();
    }

    Plans newest() {
        return newest;
    }

    /** The plan that a topology was last given. */
    Plan inForce(String id) {
        return inForce.get(id);
    }

    /** Keep the plans that are in force, and forget those of topologies that are gone. */
    void keep(Map<String, Plan> plans, Iterable<String> present) {
        Map<String, Plan> kept = new LinkedHashMap<>();
        present.forEach(id -> {
            Plan plan = plans.getOrDefault(id, inForce.get(id));
            if (plan != null) {
                kept.put(id, plan);
            }
        });
        inForce.clear();
        inForce.putAll(kept);
        save();
    }

    private void fetch() {
        while (open) {
            Map<String, Object> asked;
            synchronized (this) {
                try {
                    if (state == null || !waited) {
                        wait();
                    } else {
                        wait(AGAIN_MS);
                    }
                } catch (InterruptedException error) {
                    return;
                }
                asked = state;
            }
            if (asked == null || !open) {
                continue;
            }
            try {
                newest = source.ask(asked);
            } catch (InterruptedException error) {
                return;
            } catch (Exception | StackOverflowError error) {
                String reason = error.getMessage() == null ? error.toString() : error.getMessage();
                if (!reason.equals(newest.trouble())) {
                    LOG.warn("{}: {}", source.describe(), reason);
                }
                newest = newest.inTrouble(reason);
            }
        }
    }

    private void load() {
        if (file == null || !Files.exists(file)) {
            return;
        }
        try {
            inForce.putAll(Service.read(Files.readString(file)).byTopology());
        } catch (IOException | IllegalArgumentException error) {
            LOG.warn("{} is not used: {}", file, error.getMessage());
        }
    }

    private void save() {
        if (file == null) {
            return;
        }
        Map<String, Object> plans = new LinkedHashMap<>();
        inForce.forEach((id, plan) -> plans.put(id, plan.content()));
        Map<String, Object> content = new LinkedHashMap<>();
        content.put("protocol", Service.PROTOCOL);
        content.put("plans", plans);
        String text = Json.write(content);
        if (text.equals(onDisk)) {
            return;
        }
        try {
            Files.createDirectories(file.toAbsolutePath().getParent());
            Path draft = file.resolveSibling("." + file.getFileName());
            Files.writeString(draft, text);
            Files.move(draft, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
            onDisk = text;
        } catch (IOException error) {
            LOG.warn("the plans in force cannot be kept in {}: {}", file, error.toString());
        }
    }

    @Override
    public void close() {
        open = false;
        thread.interrupt();
    }
}
