// What the loop decided and why; plans that wait for somebody.
import { get, isSaved, send, token } from "./api.js";
import { clock, make, number } from "./figures.js";

const NAMES = { batch_seconds: "batch, s", inter_node_traffic: "tuples/s between nodes", max_rate: "rate that it sustains", nodes_used: "nodes used", feasible: "feasible" };
const say = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : number(value));

function standing(one) {
  if (one.waiting) return ["waits for you", "waits"];
  if (one.verdict) return [one.verdict, one.verdict];
  if (one.applied) return ["moved", "moved"];
  return one.move ? ["would move", "would"] : ["stays", "stays"];
}

function predictions(one) {
  const names = Object.keys(one.after).filter((name) => one.before[name] !== null || one.after[name] !== null);
  if (!names.length) return null;
  const came = one.outcome;
  const head = ["figure", "before", "predicted", "measured after"].map((word) => make("th", { scope: "col" }, word));
  const rows = names.map((name) => make("tr", {},
    make("th", { scope: "row" }, NAMES[name] ?? name.replaceAll("_", " ")),
    make("td", {}, say(one.before[name])), make("td", {}, say(one.after[name])),
    make("td", {}, came && came.figure === name ? say(came.measured) : "–")));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Predicted and measured" },
    make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
}

function card(run, one, reload) {
  const [word, kind] = standing(one);
  const moved = one.move ? `${number(one.moved_tasks)} tasks and ${number(one.moved_mb)} MB move; ` : "";
  const by = [one.by && `by ${one.by}`, one.rule && `rule ${one.rule}`].filter(Boolean).join(", ");
  const change = make("div", {});
  const changes = one.move && one.left && (one.proposed || one.applied);
  const look = changes && !isSaved
    ? make("button", { type: "button", onclick: () => showChange(run, one, change) }, "What moves")
    : null;
  const buttons = make("p", { class: "buttons" }, look ?? "");
  if (one.waiting) {
    const answer = (verdict) => async () => {
      try {
        await send("POST", `runs/${run}/decisions/${one.number}`, { verdict });
        await reload();
      } catch (error) {
        change.replaceChildren(make("p", { class: "alarm" }, error.message));
      }
    };
    const locked = !token();
    buttons.prepend(
      make("button", { type: "button", class: "act", disabled: locked, onclick: answer("accept") }, "Accept this plan"),
      make("button", { type: "button", disabled: locked, onclick: answer("refuse") }, "Refuse it"));
    if (locked) buttons.append(make("span", { class: "lead" }, "To act, open the address with the token that was printed at the start."));
  }
  return make("section", { class: "decision" },
    make("div", { class: "heading" },
      make("h3", {}, clock(one.at_s, true)), make("span", { class: `badge ${kind}` }, word)),
    make("p", {}, `${one.reason}.`.replace("..", ".")),
    make("p", { class: "lead" }, `${moved}${by}`),
    one.move ? predictions(one) ?? "" : "", buttons, change);
}

async function showChange(run, one, place) {
  try {
    const found = await get(`runs/${run}/decisions/${one.number}/change`);
    place.innerHTML = found.html; // drawn by the server, which escapes every name
  } catch (error) {
    place.replaceChildren(make("p", { class: "alarm" }, error.message));
  }
}

export async function showDecisions(place, run) {
  const { decisions } = await get(`runs/${run}/decisions`);
  const newest = [...decisions].reverse();
  const acts = newest.filter((one) => one.move || one.cause === "approved");
  const rest = newest.length - acts.length;
  let all = false;
  const reload = () => showDecisions(place, run);
  const render = () => {
    const shown = (all ? newest : acts).slice(0, 200);
    const words = decisions.length
      ? `${number(decisions.length)} ${decisions.length === 1 ? "decision" : "decisions"}, ${number(acts.length)} for another plan.`
      : "No decision was made yet. A run with --adaptive or --advise decides every interval.";
    const more = rest
      ? make("button", { type: "button", onclick: () => { all = !all; render(); } }, all ? "Only those for another plan" : `Also the ${number(rest)} to stay`)
      : null;
    place.replaceChildren(
      make("section", {}, make("h2", {}, "Decisions"), make("p", { class: "lead" }, words), more ? make("p", { class: "buttons" }, more) : ""),
      ...shown.map((one) => card(run, one, reload)));
  };
  render();
}
