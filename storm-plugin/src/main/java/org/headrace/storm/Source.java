package org.headrace.storm;

import java.util.Map;

/** Where plans come from; asked on a thread of its own, never on Nimbus' timer. */
interface Source {
    /** The plans for a cluster's state; throws what it cannot do, in words. */
    Plans ask(Map<String, Object> state) throws Exception;

    /** What it is, for messages. */
    String describe();
}
