package org.headrace.storm.topologies;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;

/** Emits tuples at a rate; the rate is that of all its tasks together, and 0 means as fast as it goes. */
public final class SourceSpout extends BaseRichSpout {
    private static final int PAYLOADS = 64;
    private static final int MOST_AT_ONCE = 20;

    private final Parameters parameters;
    private final Tuples tuples;
    private final String field;
    private transient SpoutOutputCollector out;
    private transient Meter meter;
    private transient byte[][] payloads;
    private transient double perNano;
    private transient long begin;
    private transient long sent;
    private transient int task;
    private transient int tasks;

    public SourceSpout(Parameters parameters, Tuples tuples, String field) {
        this.parameters = parameters;
        this.tuples = tuples;
        this.field = field;
    }

    @Override
    public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
        out = collector;
        meter = new Meter(parameters.measures(), context);
        task = context.getThisTaskIndex();
        tasks = context.getComponentTasks(context.getThisComponentId()).size();
        perNano = parameters.rate() / tasks / 1e9;
        payloads = new byte[PAYLOADS][parameters.payloadBytes()];
        Random random = new Random(parameters.seed() * 1000 + task);
        for (byte[] payload : payloads) {
            random.nextBytes(payload);
        }
        begin = System.nanoTime();
    }

    @Override
    public void nextTuple() {
        long due = perNano == 0 ? Long.MAX_VALUE : (long) ((System.nanoTime() - begin) * perNano);
        if (parameters.tuples() > 0) {
            due = Math.min(due, parameters.tuples() / tasks);
        }
        for (int i = 0; i < MOST_AT_ONCE && sent < due; i++) {
            long number = sent++ * tasks + task;
            List<Object> values = new ArrayList<>(tuples.tuple(number));
            values.add(payloads[(int) (number % PAYLOADS)]);
            if (parameters.acks()) {
                out.emit(values, System.nanoTime());
            } else {
                out.emit(values);
            }
            meter.emit();
        }
    }

    @Override
    public void ack(Object emittedAt) {
        meter.ack(System.nanoTime() - (Long) emittedAt);
    }

    @Override
    public void fail(Object emittedAt) {
        meter.fail();
    }

    @Override
    public void close() {
        meter.close();
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields(field, "payload"));
    }
}
