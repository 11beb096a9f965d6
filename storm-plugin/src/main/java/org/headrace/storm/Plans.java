package org.headrace.storm;

import java.util.Map;

/** What is known of plans at a moment: by topology's id or name, why there is none, and what went wrong. */
record Plans(Map<String, Plan> byTopology, Map<String, String> refusals, String trouble) {
    static final Plans NONE = new Plans(Map.of(), Map.of(), "no answer yet");

    /** What was answered last stays, with why nothing newer came. */
    Plans inTrouble(String reason) {
        return new Plans(byTopology, refusals, reason);
    }

    Plan of(String id, String name) {
        return byTopology.getOrDefault(id, byTopology.get(name));
    }

    String refusal(String id, String name) {
        return refusals.getOrDefault(id, refusals.get(name));
    }
}
