package org.headrace.storm;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as maps, lists, strings, numbers and booleans.
 *
 * <p>Storm brings another JSON library with almost every version, and what a scheduler adds to Nimbus' class path may
 * clash with it; so this jar has none.
 */
public final class Json {
    private static final int MOST_DEPTH = 100;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** The value that a text says; refuses what is not JSON, with the place. */
    public static Object read(String text) {
        Json reader = new Json(text);
        Object value = reader.value();
        reader.space();
        if (reader.at < text.length()) {
            throw reader.fault("nothing more");
        }
        return value;
    }

    /** The same, if it is an object. */
    public static Map<String, Object> readObject(String text) {
        return object(read(text), "the answer");
    }

    /** A value as an object; refuses another, by its name. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(Object value, String name) {
        if (value instanceof Map) {
            return (Map<String, Object>) value;
        }
        throw new IllegalArgumentException(name + " is not a JSON object");
    }

    /** A value as text. */
    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            out.append(value);
        } else if (value instanceof Number) {
            double number = ((Number) value).doubleValue();
            out.append(Double.isFinite(number) ? Double.toString(number) : "null");
        } else if (value instanceof Map) {
            String comma = "{";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(comma);
                quote(String.valueOf(entry.getKey()), out);
                out.append(':');
                write(entry.getValue(), out);
                comma = ",";
            }
            out.append(comma.equals("{") ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String comma = "[";
            for (Object item : (Iterable<?>) value) {
                out.append(comma);
                write(item, out);
                comma = ",";
            }
            out.append(comma.equals("[") ? "[]" : "]");
        } else {
            quote(String.valueOf(value), out);
        }
    }

    private static void quote(String value, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private Object value() {
        space();
        if (at >= text.length()) {
            throw fault("a value");
        }
        if (++depth > MOST_DEPTH) {
            throw fault("less than " + MOST_DEPTH + " levels");
        }
        char c = text.charAt(at);
        Object found;
        if (c == '{') {
            found = members();
        } else if (c == '[') {
            found = items();
        } else if (c == '"') {
            found = string();
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            found = number();
        } else {
            found = word();
        }
        depth--;
        return found;
    }

    private Map<String, Object> members() {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        if (next('}')) {
            return found;
        }
        do {
            space();
            String name = string();
            need(':');
            found.put(name, value());
        } while (next(','));
        need('}');
        return found;
    }

    private List<Object> items() {
        List<Object> found = new ArrayList<>();
        at++;
        if (next(']')) {
            return found;
        }
        do {
            found.add(value());
        } while (next(','));
        need(']');
        return found;
    }

    private String string() {
        need('"');
        StringBuilder found = new StringBuilder();
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return found.toString();
            }
            found.append(c == '\\' ? escaped() : c);
        }
        throw fault("the end of a string");
    }

    private char escaped() {
        char c = at < text.length() ? text.charAt(at++) : ' ';
        int known = "\"\\/bfnrt".indexOf(c);
        if (known >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(known);
        }
        if (c == 'u' && at + 4 <= text.length()) {
            at += 4;
            try {
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            } catch (NumberFormatException error) {
                throw fault("four hexadecimal digits");
            }
        }
        throw fault("an escaped character");
    }

    private Number number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(from, at);
        try {
            if (digits.chars().allMatch(c -> c == '-' || Character.isDigit(c))) {
                return Long.valueOf(digits);
            }
            return Double.valueOf(digits);
        } catch (NumberFormatException error) {
            throw fault("a number");
        }
    }

    private Object word() {
        for (Object word : new Object[] {true, false, "null"}) {
            if (text.startsWith(String.valueOf(word), at)) {
                at += String.valueOf(word).length();
                return word.equals("null") ? null : word;
            }
        }
        throw fault("a value");
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private boolean next(char wanted) {
        space();
        if (at < text.length() && text.charAt(at) == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void need(char wanted) {
        if (!next(wanted)) {
            throw fault("`" + wanted + "`");
        }
    }

    private IllegalArgumentException fault(String need) {
        return new IllegalArgumentException("not JSON: " + need + " is needed at character " + at);
    }
}
