// Asking the server; a page that was saved answers from what it holds.
const savedAnswers = (() => {
  const held = document.getElementById("saved");
  return held ? JSON.parse(held.textContent) : null;
})();
export const isSaved = savedAnswers !== null;

const given = /[#&]token=([^&]+)/.exec(location.hash);
if (given) {
  sessionStorage.setItem("headrace-token", decodeURIComponent(given[1]));
  history.replaceState(null, "", location.pathname + location.search);
}
export const token = () => (isSaved ? null : sessionStorage.getItem("headrace-token"));

const withToken = (headers) => (token() ? { ...headers, authorization: `Bearer ${token()}` } : headers);

async function answerOf(response) {
  const content = await response.json().catch(() => null);
  if (!response.ok) {
    const said = content?.error ?? { kind: "status", message: `the server answers ${response.status}` };
    throw Object.assign(new Error(said.message), { kind: said.kind, fix: said.fix, status: response.status });
  }
  return content;
}

export async function get(path) {
  if (isSaved) {
    if (path in savedAnswers) return savedAnswers[path];
    throw Object.assign(new Error("this saved page does not hold that"), { kind: "saved" });
  }
  return answerOf(await fetch(`api/v1/${path}`, { headers: withToken({}) }));
}

export const savedPaths = () => Object.keys(savedAnswers ?? {});

export async function send(method, path, content) {
  const body = content === undefined ? undefined : JSON.stringify(content);
  const headers = withToken(body ? { "content-type": "application/json" } : {});
  return answerOf(await fetch(`api/v1/${path}`, { method, headers, body }));
}

// Server-sent events by fetch: EventSource cannot send a token. Comes back when the stream ends.
export async function listen(path, signal, hear) {
  const response = await fetch(`api/v1/${path}`, { headers: withToken({}), signal });
  if (!response.ok) await answerOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (name && data) hear(name, JSON.parse(data));
    }
  }
}
