package org.headrace.storm.topologies;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Turns a tuple into others by a step, after so much work; the payload travels along. */
public final class WorkBolt extends BaseRichBolt {
    private static final long FACTOR = 6364136223846793005L;
    private static final long TERM = 1442695040888963407L;
    private static final long MOST_FILE_BYTES = 64_000_000;

    /** What a bolt makes of a tuple without its payload; it may keep what it likes between calls. */
    @FunctionalInterface
    public interface Step extends Serializable {
        List<List<Object>> apply(List<Object> values);
    }

    /** Makes the step of one task. */
    @FunctionalInterface
    public interface Steps extends Serializable {
        Step make();
    }

    private final Parameters parameters;
    private final Steps steps;
    private final List<String> fields;
    private final boolean tick;
    private final double baseWork;
    private transient Step step;
    private transient OutputCollector out;
    private transient Meter meter;
    private transient OutputStream file;
    private transient Path path;
    private transient long written;
    private transient long ticks;
    private transient long value;

    /** `baseWork`: steps of computation per tuple where the parameter `work` is 1. */
    public WorkBolt(Parameters parameters, Steps steps, List<String> fields, double baseWork, boolean tick) {
        this.parameters = parameters;
        this.steps = steps;
        this.fields = List.copyOf(fields);
        this.tick = tick;
        this.baseWork = baseWork;
    }

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        out = collector;
        step = steps.make();
        meter = new Meter(parameters.measures(), context);
        if (parameters.ioBytes() > 0) {
            try {
                path = Files.createTempFile("headrace-io-", ".bin");
                file = new BufferedOutputStream(Files.newOutputStream(path), 8192);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    @Override
    public void execute(Tuple tuple) {
        meter.receive(tuple.getSourceTask());
        compute((long) (baseWork * parameters.work()));
        if (file != null) {
            store();
        }
        if (tuple.getSourceStreamId().equals(Topologies.TICK)) {
            out.ack(tuple);
            return;
        }
        int last = tuple.size() - 1;
        for (List<Object> made : step.apply(tuple.getValues().subList(0, last))) {
            List<Object> values = new ArrayList<>(made);
            values.add(tuple.getValue(last));
            out.emit(tuple, values);
            meter.emit();
        }
        if (tick && ++ticks % 100 == 0) {
            out.emit(Topologies.TICK, tuple, new Values(ticks));
            meter.emit();
        }
        out.ack(tuple);
    }

    private void compute(long count) {
        long x = value;
        for (long i = 0; i < count; i++) {
            x = x * FACTOR + TERM;
        }
        value = x; // kept, so that the loop is not left out by the compiler
    }

    private void store() {
        try {
            file.write(new byte[parameters.ioBytes()]);
            file.flush();
            written += parameters.ioBytes();
            if (written > MOST_FILE_BYTES) {
                file.close();
                file = new BufferedOutputStream(Files.newOutputStream(path), 8192);
                written = 0;
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void cleanup() {
        meter.close();
        if (file != null) {
            try {
                file.close();
                Files.deleteIfExists(path);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        List<String> all = new ArrayList<>(fields);
        all.add("payload");
        declarer.declare(new Fields(all));
        if (tick) {
            declarer.declareStream(Topologies.TICK, new Fields("tick"));
        }
    }
}
