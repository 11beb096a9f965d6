package org.headrace.storm;

import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Headrace as a service: {@code headrace storm serve}. */
final class Service implements Source {
    static final String PROTOCOL = "headrace-storm/1";
    static final int MOST_BYTES = 64_000_000;

    private final URI address;
    private final int limitSecs;
    private final HttpClient client;

    Service(String address, int limitSecs) {
        this.address = URI.create(address.replaceAll("/+$", "") + "/storm/v1/plans");
        this.limitSecs = limitSecs;
        this.client = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(limitSecs))
            .build();
    }

    @Override
    public Plans ask(Map<String, Object> state) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(address)
            .timeout(Duration.ofSeconds(limitSecs))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(Json.write(state), StandardCharsets.UTF_8))
            .build();
        HttpResponse<String> response;
        try {
            // A request's own time limit ends with the first byte; one that trickles must not hold us either.
            response = client.sendAsync(request, HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8))
                .get(limitSecs + 1L, TimeUnit.SECONDS);
        } catch (TimeoutException error) {
            throw new IllegalStateException("no answer within " + limitSecs + " s");
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            if (cause instanceof HttpTimeoutException) {
                throw new IllegalStateException("no answer within " + limitSecs + " s");
            }
            if (cause instanceof ConnectException) {
                throw new IllegalStateException("nobody answers there");
            }
            throw new IllegalStateException(String.valueOf(cause));
        }
        if (response.statusCode() != 200) {
            throw new IllegalStateException("it answered with status " + response.statusCode());
        }
        return read(response.body());
    }

    /** The plans of an answer; one that is wrong in any place is wrong as a whole. */
    static Plans read(String body) {
        if (body.length() > MOST_BYTES) {
            throw new IllegalArgumentException("the answer is longer than " + MOST_BYTES + " bytes");
        }
        Map<String, Object> answer = Json.readObject(body);
        if (!PROTOCOL.equals(answer.get("protocol"))) {
            throw new IllegalArgumentException(
                "the answer's protocol is " + answer.get("protocol") + ", not " + PROTOCOL);
        }
        Map<String, Plan> plans = new LinkedHashMap<>();
        Json.object(answer.getOrDefault("plans", Map.of()), "`plans`")
            .forEach((topology, plan) -> plans.put(topology, Plan.read(topology, plan)));
        Map<String, String> refusals = new LinkedHashMap<>();
        Json.object(answer.getOrDefault("refusals", Map.of()), "`refusals`")
            .forEach((topology, reason) -> refusals.put(topology, String.valueOf(reason)));
        return new Plans(plans, refusals, null);
    }

    @Override
    public String describe() {
        return "Headrace at " + address.getScheme() + "://" + address.getAuthority();
    }
}
