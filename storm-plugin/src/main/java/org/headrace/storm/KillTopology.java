package org.headrace.storm;

import java.util.Map;
import org.apache.storm.generated.KillOptions;
import org.apache.storm.utils.NimbusClient;
import org.apache.storm.utils.Utils;

/** Ends a topology at once: {@code KillTopology NAME}. */
public final class KillTopology {
    private KillTopology() { }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> conf = Utils.readStormConfig();
        KillOptions now = new KillOptions();
        now.set_wait_secs(0);
        NimbusClient.withConfiguredClient(client -> client.killTopologyWithOpts(arguments[0], now), conf);
    }
}
