// Which run, which view, which moment; and what the server says is new.
import { get, isSaved, listen } from "./api.js";
import { Charts, figuresAt, indexAt } from "./charts.js";
import { showDecisions } from "./decisions.js";
import { clock, duration, make, number, percent, short, span } from "./figures.js";
import { drawnPlan, fill, hideTask, limitsOf, setMoment, showPlan, watchTasks } from "./picture.js";
import { showNew, showSpark, showWhatIf } from "./try.js";

const $ = (id) => document.getElementById(id);
const RANGES = [["5 min", 300], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["all", Infinity]];
const POINTS = 1200;
const STATES = { waiting: "waiting for the first batch", running: "running", ended: "ended", failed: "failed", stopped: "stopped: its process is gone" };

const now = { run: null, overview: null, series: null, latest: {}, at: null, range: Infinity, view: null, hearing: null };
const charts = new Charts($("chart-list"), (at) => goTo(at));

function complain(error) {
  $("trouble").textContent = error ? error.message : "";
  $("trouble").hidden = !error;
}
const guarded = (work) => async (...given) => {
  try {
    await work(...given);
    complain(null);
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
  }
};

// The picture of the moment that is looked at: the newest, or one that was chosen.
function showFigures(figures, at) {
  const hot = fill(figures);
  const busiest = Object.entries(figures).filter(([name, value]) => name.startsWith("cpu:") && value !== null)
    .map(([name, value]) => [name.slice(4), value / (limitsOf(name.slice(4)).cpu ?? Infinity)])
    .reduce((a, b) => (b[1] > a[1] ? b : a), ["", -1]);
  const share = figures.total_mbps ? figures.remote_mbps / figures.total_mbps : null;
  const tiles = [
    [short(figures.tuples_per_s), "tuples/s taken in"],
    ...(figures.batch_s === undefined ? [] : [[duration(figures.batch_s), "batch"]]),
    [duration(figures.latency_s), now.overview?.simulated ? "latency, mean" : "latency, at most"],
    [`${short(figures.remote_mbps)}`, share === null ? "Mbit/s between nodes" : `Mbit/s between nodes, ${percent(share)} of all`],
    ...(figures.pending === undefined || figures.pending === null ? [] : [[short(figures.pending), "tuples wait"]]),
    ...(busiest[1] >= 0 ? [[percent(busiest[1]), `CPU of the busiest node, ${busiest[0]}`]] : []),
  ];
  const place = $("tiles");
  if (place.children.length !== tiles.length) {
    place.replaceChildren(...tiles.map(() => make("div", {}, make("dt"), make("dd"))));
  }
  tiles.forEach(([value, name], i) => {
    const [dt, dd] = place.children[i].children;
    dt.textContent = name;
    dd.textContent = value;
  });
  const words = hot.slice(0, 6).map((one) => `${one.node}: ${percent(one.share)} of its ${one.what}`);
  const said = hot.length ? `Hot: ${words.join("; ")}${hot.length > 6 ? ` and ${hot.length - 6} more` : ""}` : "";
  if ($("hot").textContent !== said) $("hot").textContent = said;
  $("moment-words").textContent = at === null ? (now.overview?.state === "running" ? "now" : clock(now.overview?.newest_s ?? 0, true)) : clock(at, true);
}

let frame = 0;
function drawSoon() {
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    drawMoment();
  });
}

function planAt(index) {
  const plans = now.overview?.plans ?? [];
  return plans[Math.min(now.series.plan[index], plans.length - 1)]?.name;
}

let asking = null; // one question for a moment at a time; the newest wish wins
async function askMoment(at) {
  if (asking) {
    asking.wish = at;
    return;
  }
  asking = { wish: null };
  try {
    const found = await get(`runs/${now.run}/moment?at_s=${at}`);
    if (now.at !== null) showFigures({ ...found.figures }, now.at);
  } catch {
    // the next moment will do
  }
  const { wish } = asking;
  asking = null;
  if (wish !== null && now.at !== null) askMoment(wish);
}

function drawMoment() {
  charts.point(now.at);
  $("live").setAttribute("aria-pressed", String(now.at === null));
  if (now.at === null) {
    showFigures(now.latest, null);
    return;
  }
  const i = indexAt(now.series.at_s, now.at);
  const wanted = planAt(i);
  if (wanted && wanted !== drawnPlan()) showPlan(now.run, wanted).then(drawSoon, complain);
  if (Object.keys(now.series.nodes).length || isSaved) showFigures(figuresAt(now.series, i), now.at);
  else askMoment(now.at);
}

function goTo(at) {
  const { at_s: times } = now.series ?? { at_s: [] };
  if (!times.length) return;
  const end = times[times.length - 1];
  now.at = at === null || at >= end ? null : Math.max(at, times[0]);
  $("moment").value = String(now.at === null ? times.length - 1 : indexAt(times, now.at));
  setMoment(now.at);
  if (now.at === null && now.overview.plan !== drawnPlan()) showPlan(now.run, now.overview.plan).then(drawSoon, complain);
  drawSoon();
}

function marks() {
  const plans = (now.overview?.plans ?? []).map(({ at_s, name }) => ({ at_s, kind: "plan", words: `plan ${name} from here on` }));
  const decisions = (now.decisions ?? []).filter((one) => one.move).map((one) => ({ at_s: one.at_s, kind: "decision", words: one.reason }));
  return [...plans, ...decisions];
}

function showMarks(found) {
  const rows = found.filter(({ at_s }) => at_s >= (now.series.at_s[0] ?? 0)).sort((a, b) => b.at_s - a.at_s).slice(0, 30);
  $("marks").replaceChildren(make("ul", { class: "marks" }, ...rows.map((one) =>
    make("li", {}, make("button", { type: "button", class: "quiet", onclick: () => goTo(one.at_s + 0.001) }, clock(one.at_s, true)), ` ${one.words}`))));
}

async function loadSeries() {
  const last = now.overview.newest_s;
  const from = Number.isFinite(now.range) && last !== null ? `&from_s=${last - now.range}` : "";
  now.series = await get(`runs/${now.run}/series?points=${POINTS}${isSaved ? "" : from}`);
  const { decisions } = await get(`runs/${now.run}/decisions`);
  now.decisions = decisions;
  showSeries();
}

function showSeries() {
  const count = now.series.at_s.length;
  $("moment").max = String(Math.max(0, count - 1));
  $("scrubber").hidden = count < 2 || !["now", "time"].includes(now.view);
  if (now.at === null) $("moment").value = $("moment").max;
  if (now.view === "time") {
    const found = marks();
    charts.show(now.series, found, limitsOf);
    showMarks(found);
    charts.point(now.at);
  }
}

function showState() {
  const { state, name, batches, failure, folder } = now.overview;
  $("title").textContent = name;
  document.title = `${name}: ${state}, Headrace`;
  const kind = now.overview.simulated ? "simulated" : STATES[state];
  $("state").textContent = `${kind}, ${number(batches)} ${now.overview.simulated ? "steps" : "batches"}${failure ? `: ${failure}` : ""}${isSaved ? `; saved from ${folder}` : ""}`;
  $("state").className = `state ${state}`;
  $("waiting").hidden = now.overview.waiting === null;
  $("waiting").textContent = now.overview.waiting === null ? "" : "1 waits";
}

async function loadOverview() {
  now.overview = await get(`runs/${now.run}`);
  showState();
}

async function loadRun(id) {
  now.hearing?.abort();
  Object.assign(now, { run: id, at: null, series: null, latest: {} });
  await loadOverview();
  if (now.overview.batches) {
    const newest = await get(`runs/${id}/moment`);
    now.latest = newest.figures;
    if (newest.plan) await showPlan(id, newest.plan);
    await loadSeries();
    drawMoment();
  }
  showMoving();
  if (!isSaved) hearAgain(id);
}

// A batch that has just ended: the picture at once, the axis with it, no further question.
function addBatch({ at_s, figures }) {
  const { batch, plan, ...rest } = figures;
  now.latest = rest;
  now.overview.batches += 1;
  now.overview.newest_s = at_s;
  showState();
  const series = now.series;
  if (series && series.at_s.length) {
    series.at_s.push(at_s);
    series.plan.push(plan);
    series.batch.push(batch);
    for (const [key, values] of Object.entries(series.totals)) values.push(figures[key] ?? null);
    for (const [name, kinds] of [...Object.entries(series.nodes), ...Object.entries(series.components)]) {
      for (const [kind, values] of Object.entries(kinds)) values.push(figures[`${kind}:${name}`] ?? null);
    }
    for (const [stream, rows] of Object.entries(series.streams)) {
      rows.tuples.push(figures[`stream:${stream}`] ?? null);
      rows.crossing.push(figures[`crossing:${stream}`] ?? null);
    }
    while (Number.isFinite(now.range) && series.at_s[0] < at_s - now.range) dropFirst(series);
    showSeries();
  } else {
    reloadSoon();
  }
  if (series && series.at_s.length > 2 * POINTS) reloadSoon();
  if (now.at === null) drawSoon();
}

function dropFirst(series) {
  for (const values of [series.at_s, series.plan, series.batch, ...Object.values(series.totals)]) values.shift();
  for (const kinds of [...Object.values(series.nodes), ...Object.values(series.components)]) Object.values(kinds).forEach((values) => values.shift());
  for (const rows of Object.values(series.streams)) Object.values(rows).forEach((values) => values.shift());
}

let reloading = null;
function reloadSoon() {
  reloading ??= setTimeout(guarded(async () => {
    reloading = null;
    await loadOverview();
    if (!now.overview.batches) return;
    if (now.at === null) {
      const newest = await get(`runs/${now.run}/moment`);
      now.latest = newest.figures;
      if (newest.plan) await showPlan(now.run, newest.plan);
    }
    await loadSeries();
    showMoving();
  }), 200);
}

async function hearAgain(id) {
  const control = new AbortController();
  now.hearing = control;
  const hear = guarded(async (name, data) => {
    if (now.run !== id) return;
    if (name === "batch") addBatch(data);
    else if (name === "decisions") {
      await loadOverview();
      if (now.view === "decisions") await showDecisions($("view-decisions"), id);
      if (now.series) await loadSeries();
    } else if (name === "state") {
      Object.assign(now.overview, data);
      showState();
    } else if (name !== "hello") reloadSoon();
  });
  let first = true;
  while (!control.signal.aborted) {
    if (!first) reloadSoon(); // what came while nobody listened
    first = false;
    await listen(`runs/${id}/events`, control.signal, hear).catch(() => null);
    if (!control.signal.aborted) {
      $("state").textContent = "the server does not answer; trying again";
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

// What follows the moment is there in two views, once there is something to show.
function showMoving() {
  const moving = ["now", "time"].includes(now.view) && now.run !== null;
  $("tiles").hidden = !moving || !now.overview?.batches;
  $("hot").hidden = !moving;
  $("picture").hidden = !moving || !drawnPlan();
  $("charts").hidden = now.view !== "time" || !moving;
  $("scrubber").hidden = !moving || (now.series?.at_s.length ?? 0) < 2;
  $("live").textContent = now.overview?.state === "running" ? "Live" : "Newest";
  if (moving && now.series) {
    showSeries();
    drawMoment();
  }
}

const showView = guarded(async (wanted) => {
  const known = [...document.querySelectorAll("[data-view]")].filter((one) => !one.hidden).map((one) => one.dataset.view);
  const view = known.includes(wanted) ? wanted : known[0];
  now.view = view;
  hideTask();
  for (const one of document.querySelectorAll("[data-view]")) {
    if (one.dataset.view === view) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  for (const one of document.querySelectorAll(".view")) one.hidden = one.id !== `view-${view}`;
  showMoving();
  if (view === "decisions") await showDecisions($("view-decisions"), now.run);
  if (view === "what-if") await showWhatIf($("view-what-if"), now.overview);
  if (view === "new") await showNew($("view-new"));
  if (view === "spark") await showSpark($("view-spark"), now.advice[0]);
});

function setUpRanges() {
  $("ranges").replaceChildren(...RANGES.map(([label, seconds]) =>
    make("button", { type: "button", "aria-pressed": String(seconds === now.range), onclick: guarded(async (event) => {
      now.range = seconds;
      for (const one of $("ranges").children) one.setAttribute("aria-pressed", String(one === event.target));
      await loadSeries();
      goTo(null);
    }) }, label)));
}

const start = guarded(async () => {
  watchTasks();
  setUpRanges();
  $("moment").addEventListener("input", () => goTo(now.series.at_s[Number($("moment").value)]));
  $("live").addEventListener("click", () => goTo(null));
  addEventListener("hashchange", () => location.hash !== "#main" && showView(location.hash.slice(1)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => now.view === "time" && charts.show());
  const { runs, advice } = await get("runs");
  now.advice = advice;
  const hide = (view, hidden) => { document.querySelector(`[data-view="${view}"]`).hidden = hidden; };
  for (const view of ["now", "time", "decisions"]) hide(view, !runs.length);
  hide("what-if", !runs.length || isSaved);
  hide("spark", !advice.length);
  hide("new", isSaved);
  if (runs.length) {
    $("run").replaceChildren(...runs.map((one) => make("option", { value: one.id }, `${one.name} (${one.id})`)));
    $("run-label").hidden = runs.length < 2;
    $("run").addEventListener("change", guarded(async () => {
      document.documentElement.dataset.ready = "no";
      await loadRun($("run").value);
      await showView(now.view);
      document.documentElement.dataset.ready = "yes";
    }));
    const newest = [...runs].sort((a, b) => (b.newest_s ?? Infinity) - (a.newest_s ?? Infinity))[0];
    $("run").value = newest.id;
    await loadRun(newest.id);
  } else {
    $("title").textContent = advice.length ? "A Spark job" : "Headrace";
  }
  await showView(location.hash.slice(1) || (advice.length && !runs.length ? "spark" : runs.length ? "now" : "new"));
  document.documentElement.dataset.ready = "yes";
  document.documentElement.dataset.span = now.series ? span((now.series.at_s.at(-1) ?? 0) - (now.series.at_s[0] ?? 0)) : "";
});
start();
