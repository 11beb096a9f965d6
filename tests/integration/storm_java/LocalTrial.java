import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.KillOptions;
import org.apache.storm.generated.RebalanceOptions;
import org.headrace.storm.Json;
import org.headrace.storm.NimbusReader;
import org.headrace.storm.topologies.Parameters;
import org.headrace.storm.topologies.Submit;
import org.headrace.storm.topologies.Topologies;

/** A Storm cluster in one process that does what its standard input says, a JSON object per line. */
public final class LocalTrial {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> setup = Json.readObject(arguments[0]);
        LocalCluster.Builder builder = new LocalCluster.Builder()
            .withSupervisors(0)
            .withDaemonConf(Submit.asYaml(Json.object(setup.get("conf"), "conf")));
        try (LocalCluster cluster = builder.build()) {
            for (Object name : (List<?>) setup.get("nodes")) {
                add(cluster, String.valueOf(name), setup);
            }
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            System.out.println("ready");
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                System.out.println("answer " + Json.write(answer(cluster, Json.readObject(line), setup)));
            }
        }
        System.exit(0);
    }

    private static Object answer(LocalCluster cluster, Map<String, Object> asked, Map<String, Object> setup) {
        try {
            String name = String.valueOf(asked.get("name"));
            switch (String.valueOf(asked.get("do"))) {
                case "look":
                    return NimbusReader.read(cluster.getNimbus());
                case "submit":
                    Map<String, Object> given = Json.object(asked.get("parameters"), "parameters");
                    cluster.submitTopology(name, Submit.conf(given),
                        Topologies.build(String.valueOf(asked.get("kind")), Parameters.of(given)));
                    return true;
                case "kill":
                    KillOptions now = new KillOptions();
                    now.set_wait_secs(0);
                    cluster.killTopologyWithOpts(name, now);
                    return true;
                case "rebalance":
                    RebalanceOptions options = new RebalanceOptions();
                    options.set_wait_secs(0);
                    Map<String, Integer> counts = new HashMap<>();
                    Json.object(asked.get("executors"), "executors")
                        .forEach((component, count) -> counts.put(component, ((Long) count).intValue()));
                    options.set_num_executors(counts);
                    cluster.rebalance(name, options);
                    return true;
                case "lose":
                    cluster.killSupervisor(name);
                    return true;
                case "join":
                    add(cluster, name, setup);
                    return true;
                default:
                    return Map.of("error", "what?");
            }
        } catch (Exception error) {
            return Map.of("error", String.valueOf(error));
        }
    }

    private static void add(LocalCluster cluster, String name, Map<String, Object> setup) throws Exception {
        Map<String, Object> conf = new LinkedHashMap<>();
        conf.put("supervisor.scheduler.meta", Map.of("headrace.node", name));
        cluster.addSupervisor(((Long) setup.get("slots")).intValue(), conf, name);
    }
}
