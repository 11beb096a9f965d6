// The drawings of a plan, filled in with what is measured.
import { get } from "./api.js";
import { make, number, percent, short } from "./figures.js";

const byId = (id) => document.getElementById(id);
let drawing = null; // what the server drew, and the elements in it
let detailFor = null;
let details = { batch: null, tasks: {}, edges: [] };

export const drawnPlan = () => drawing?.plan ?? null;
export const limitsOf = (node) => drawing?.nodes[node] ?? {};

export async function showPlan(run, name) {
  if (drawing && drawing.run === run && drawing.plan === name) return;
  const path = `runs/${run}/picture${name ? `?plan=${encodeURIComponent(name)}` : ""}`;
  const found = await get(path);
  drawing = { ...found, run, streams: new Map(), cards: new Map(), squares: new Map(), boxes: new Map() };
  // Markup from the server's own drawing code, which escapes every name.
  byId("topology").innerHTML = found.topology;
  byId("legend").innerHTML = found.legend;
  byId("map").innerHTML = found.map;
  byId("cards").innerHTML = found.cards;
  byId("plan-name").textContent = `plan ${found.plan}, ${number(found.tasks)} tasks`;
  byId("picture").classList.toggle("few", Object.keys(found.nodes).length <= 8);
  const letters = found.letters;
  const namesOf = (ends) => {
    const [a, b] = ends.split(" ");
    return `${letters[a]}→${letters[b ?? a]}`;
  };
  for (const one of byId("topology").querySelectorAll("g.stream")) {
    const [shaft, core] = one.querySelectorAll("path:not(.head)");
    drawing.streams.set(namesOf(one.dataset.c), { shaft, core, head: one.querySelector(".head"), title: one.querySelector("title") });
  }
  for (const label of byId("topology").querySelectorAll("text.label")) {
    const stream = drawing.streams.get(namesOf(label.dataset.label));
    if (stream) stream.label = label.lastElementChild;
  }
  for (const box of byId("topology").querySelectorAll("g[data-c]:not(.stream)")) {
    const detail = box.querySelector(".detail");
    if (detail) drawing.boxes.set(letters[box.dataset.c], { detail, words: detail.textContent.split(" · ")[0] });
  }
  for (const square of byId("map").querySelectorAll("rect[data-node]")) {
    drawing.squares.set(square.dataset.node, { square, title: square.querySelector("title") });
  }
  for (const rack of byId("map").querySelectorAll("[data-rack]")) {
    rack.addEventListener("click", () => enterRack(rack));
  }
  takeCards();
}

function takeCards() {
  drawing.cards.clear();
  for (const card of byId("cards").querySelectorAll("article[data-node]")) {
    const meters = [...card.querySelectorAll("[data-meter]")].map((meter) => {
      const bar = meter.querySelector(".bar");
      const fill = bar.appendChild(document.createElement("i"));
      return { meter, fill, words: meter.lastElementChild, kind: meter.dataset.meter,
        limit: meter.dataset.limit ? Number(meter.dataset.limit) : null, unit: meter.dataset.unit };
    });
    drawing.cards.set(card.dataset.node, { card, meters });
  }
  const tasks = [...byId("cards").querySelectorAll(".worker .task")];
  tasks.forEach((task, i) => {
    task.tabIndex = i ? -1 : 0;
    task.setAttribute("role", "button");
    task.setAttribute("aria-label", task.title || task.dataset.c);
  });
}

async function enterRack(rack) {
  const name = rack.dataset.rack;
  const found = await get(`runs/${drawing.run}/picture?plan=${encodeURIComponent(drawing.plan)}&rack=${encodeURIComponent(name)}`);
  byId("cards").innerHTML = found.cards;
  for (const one of byId("map").querySelectorAll("[data-rack]")) one.setAttribute("aria-expanded", one === rack);
  takeCards();
  fill(drawing.figures ?? {});
  byId("cards").scrollIntoView({ block: "nearest" });
}

// Fill the drawings in; figures are named as the server names them (cpu:node, stream:a→b).
export function fill(figures) {
  if (!drawing) return [];
  drawing.figures = figures;
  fillStreams(figures);
  for (const [name, box] of drawing.boxes) {
    const rate = figures[`in:${name}`] || figures[`out:${name}`];
    if (rate !== undefined) box.detail.textContent = `${box.words} · ${short(rate)}/s`;
  }
  const hot = [];
  for (const [node, limits] of Object.entries(drawing.nodes)) {
    const share = limits.cpu ? (figures[`cpu:${node}`] ?? 0) / limits.cpu : 0;
    const link = limits.mbps ? (figures[`mbps:${node}`] ?? 0) / limits.mbps : 0;
    if (share > drawing.warm) hot.push({ node, what: "CPU", share });
    if (link > drawing.warm) hot.push({ node, what: "link", share: link });
    const spot = drawing.squares.get(node);
    if (spot) {
      const used = figures[`cpu:${node}`];
      const level = used === undefined ? 0 : drawing.loads.findIndex((limit) => share < limit) + 1 || drawing.loads.length + 1;
      spot.square.setAttribute("class", `load${level}`);
      spot.title.textContent = `${node}: ${percent(share)} of its CPU`;
    }
  }
  for (const [node, { card, meters }] of drawing.cards) {
    let worst = 0;
    for (const one of meters) worst = Math.max(worst, fillMeter(one, figures[`${one.kind}:${node}`]));
    card.classList.toggle("is-hot", worst > drawing.hot);
  }
  return hot.sort((a, b) => b.share - a.share);
}

function fillMeter({ meter, fill: inside, words, limit, unit }, value) {
  if (value === undefined || value === null) {
    words.textContent = "–";
    inside.style.width = "0";
    return 0;
  }
  const share = limit ? value / limit : 0;
  const kind = share > 1 ? "over" : share > drawing.hot ? "hot" : share > drawing.warm ? "warm" : "ours";
  inside.className = kind;
  inside.style.width = `${Math.min(100, 100 * share).toFixed(1)}%`;
  words.textContent = limit ? `${number(Number(value.toPrecision(3)))} / ${number(limit)}${unit}` : `${number(Number(value.toPrecision(3)))}${unit}`;
  meter.classList.toggle("bad", share > 1);
  return share;
}

function fillStreams(figures) {
  let largest = 0;
  for (const name of drawing.streams.keys()) largest = Math.max(largest, figures[`stream:${name}`] ?? 0);
  for (const [name, stream] of drawing.streams) {
    const rate = figures[`stream:${name}`];
    if (rate === undefined) continue;
    const wide = Math.max(drawing.thinnest, (drawing.widest * rate) / (largest || 1));
    const crossing = rate ? (figures[`crossing:${name}`] ?? 0) / rate : 0;
    stream.shaft.setAttribute("stroke-width", wide.toFixed(2));
    if (stream.core) stream.core.setAttribute("stroke-width", crossing ? Math.max(1, wide * crossing).toFixed(2) : "0");
    stream.head.classList.toggle("far", crossing >= 0.5);
    stream.title.textContent = `${name.replace("→", " → ")}\n${number(rate)} tuples/s\n${percent(crossing)} between nodes`;
    if (stream.label) stream.label.textContent = `${short(rate)}/s`;
  }
}

// What a task does and with whom it speaks: asked for when somebody wants to know.
async function showTask(square) {
  const name = square.title;
  if (!name || !drawing) return;
  detailFor = name;
  const panel = byId("detail");
  const wanted = drawing.moment ? `?at_s=${drawing.moment}&tasks=true` : "?tasks=true";
  const found = await get(`runs/${drawing.run}/moment${wanted}`).catch((error) => ({ detail: { note: error.message, tasks: {}, edges: [] } }));
  if (detailFor !== name) return;
  details = found.detail ?? { tasks: {}, edges: [], note: "nothing was measured yet" };
  const own = details.tasks[name];
  const [sent, got] = [0, 1].map((end) => details.edges.filter((edge) => edge[end] === name).sort((a, b) => b[2] - a[2]));
  const list = (edges, end) => edges.slice(0, 5).map((edge) => `${edge[end]} (${short(edge[2])})`).join(", ") || "nobody";
  const rows = own
    ? [["runs on", own.node], ["tuples in", number(own.tuples_in)], ["tuples out", number(own.tuples_out)],
       ["CPU", `${number(own.cpu_ms)} ms`], ["memory", `${number(own.memory_mb)} MB`],
       ["gets from", list(got, 0)], ["sends to", list(sent, 1)]]
    : [["in this batch", details.note ?? "it has not run"]];
  panel.replaceChildren(
    make("h3", {}, name),
    make("dl", {}, ...rows.flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)])),
    make("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: hideTask }, "×"),
  );
  panel.hidden = false;
  light(name, sent, got);
}

function light(name, sent, got) {
  const partners = new Set([name, ...sent.map((edge) => edge[1]), ...got.map((edge) => edge[0])]);
  const marked = partners.size > 1;
  document.body.classList.toggle("lighting", marked);
  for (const one of document.querySelectorAll("#cards .task")) one.classList.toggle("lit", partners.has(one.title));
  const ends = new Set([...partners].map((task) => task.replace(/\.\d+$/, "")));
  const letters = Object.entries(drawing.letters).filter(([, component]) => ends.has(component)).map(([letter]) => letter);
  for (const one of document.querySelectorAll("#topology [data-c], #legend [data-c]")) {
    one.classList.toggle("lit", one.dataset.c.split(" ").every((letter) => letters.includes(letter)));
  }
}

export function hideTask() {
  detailFor = null;
  byId("detail").hidden = true;
  document.body.classList.remove("lighting");
}

export function setMoment(at) {
  if (drawing) drawing.moment = at;
}

function moveAmong(square, key) {
  const all = [...byId("cards").querySelectorAll(".worker .task")];
  const cards = [...byId("cards").querySelectorAll("article")];
  const card = cards.indexOf(square.closest("article"));
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  const next = step
    ? all[all.indexOf(square) + step]
    : cards[card + (key === "ArrowDown" ? 1 : -1)]?.querySelector(".worker .task");
  if (!next) return;
  square.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export function watchTasks() {
  const cards = byId("cards");
  const taskAt = (event) => event.target.closest(".worker .task[title]");
  cards.addEventListener("click", (event) => taskAt(event) && showTask(taskAt(event)));
  cards.addEventListener("focusin", (event) => taskAt(event) && showTask(taskAt(event)));
  let resting = null;
  cards.addEventListener("mouseover", (event) => {
    clearTimeout(resting);
    const square = taskAt(event);
    if (square) resting = setTimeout(() => showTask(square), 120);
  });
  cards.addEventListener("mouseleave", () => {
    clearTimeout(resting);
    if (!cards.contains(document.activeElement)) hideTask();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTask();
    const square = taskAt(event);
    if (!square || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    moveAmong(square, event.key);
  });
  // A component or a stream that is pointed at lights what belongs to it, as in the reports.
  const topology = byId("topology");
  topology.addEventListener("mouseover", (event) => {
    const at = event.target.closest("[data-c]");
    const wanted = at ? at.dataset.c.split(" ") : [];
    document.body.classList.toggle("lighting", wanted.length > 0);
    for (const one of document.querySelectorAll("[data-c]")) {
      const ends = one.dataset.c.split(" ");
      const both = wanted.length > 1 && ends.length > 1;
      one.classList.toggle("lit", both ? one === at : ends.some((name) => wanted.includes(name)));
    }
  });
  topology.addEventListener("mouseleave", () => document.body.classList.remove("lighting"));
}
