package org.headrace.storm.topologies;

import java.io.Serializable;
import java.util.List;
import org.apache.storm.tuple.Values;

/** The n-th tuple of a source: the same in every run with the same seed. */
@FunctionalInterface
public interface Tuples extends Serializable {
    List<Object> tuple(long number);

    String[] SYLLABLES = {
        "ba", "den", "fi", "gol", "hu", "ka", "lim", "no", "per", "quo", "ra", "si", "tem", "ul", "vo", "zan"};
    String[] NAMES = {"nathan", "mike", "jackson", "golda", "bertels"};

    /** Sentences of words of which low numbers are frequent. */
    static Tuples sentences(int words, long seed) {
        return number -> {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < words; i++) {
                int word = (int) (4096 * Math.pow(draw(number * words + i, seed), 3));
                text.append(i == 0 ? "" : " ")
                    .append(SYLLABLES[word >> 8]).append(SYLLABLES[word >> 4 & 15]).append(SYLLABLES[word & 15]);
            }
            return new Values(text.toString());
        };
    }

    static Tuples names(long seed) {
        return number -> new Values(NAMES[(int) (NAMES.length * draw(number, seed))]);
    }

    /** Page views: page, status, zip code and user with tabs between them; a tenth finds no page. */
    static Tuples views(long seed) {
        return number -> new Values("http://example.com/" + (int) (500 * Math.pow(draw(4 * number, seed), 3))
            + "\t" + (draw(4 * number + 2, seed) < 0.1 ? 404 : 200)
            + "\t" + (10_000 + (int) (90_000 * draw(4 * number + 3, seed)))
            + "\tuser-" + (int) (5000 * Math.pow(draw(4 * number + 1, seed), 2)));
    }

    static Tuples values(long seed) {
        return number -> new Values(mix(number, seed));
    }

    /** A number from 0 to below 1, by a hash of its place. */
    static double draw(long place, long seed) {
        return (mix(place, seed) >>> 11) * 0x1.0p-53;
    }

    static long mix(long place, long seed) {
        long mixed = place + seed * 0xD1342543DE82EF95L;
        mixed = (mixed ^ mixed >>> 30) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94D049BB133111EBL;
        return mixed ^ mixed >>> 31;
    }
}
