// Lines over one axis of time, with plans and decisions as marks and a cursor to move.
import { clock, duration, make, short } from "./figures.js";

const SVG = "http://www.w3.org/2000/svg";
const [LEFT, RIGHT, HEIGHT, TOP, BOTTOM] = [58, 12, 132, 26, 20];
const KINDS = [
  { name: "tuples/s", lines: [["tuples_per_s", "taken in"]], words: short },
  { name: "seconds", lines: [["batch_s", "batch"], ["latency_s", "latency, at most"]], words: duration },
  { name: "Mbit/s", lines: [["remote_mbps", "between nodes"], ["total_mbps", "all"]], words: short },
  { name: "tuples that wait", lines: [["pending", "backlog"]], words: short },
];
const STROKES = ["var(--accent)", "var(--bad)"];

const draw = (tag, attributes, text) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

export class Charts {
  constructor(place, choose) {
    Object.assign(this, { place, choose, series: null, marks: [], charts: [], cursor: null });
    new ResizeObserver(() => this.series && this.width !== place.clientWidth && this.show()).observe(place);
  }

  show(series = this.series, marks = this.marks, limits = this.limits) {
    Object.assign(this, { series, marks, limits, width: this.place.clientWidth });
    if (!series || series.at_s.length < 2 || !this.width) {
      this.place.replaceChildren(make("p", { class: "lead" }, "There is nothing to draw yet."));
      return;
    }
    const at = series.at_s;
    const [first, last] = [at[0], at[at.length - 1]];
    const scale = (this.width - LEFT - RIGHT) / (last - first || 1);
    this.x = (seconds) => LEFT + (seconds - first) * scale;
    this.back = (x) => first + (x - LEFT) / scale;
    this.span = [first, last];
    const shown = KINDS.filter(({ lines }) => lines.some(([key]) => series.totals[key]?.some((v) => v !== null)));
    this.charts = shown.map((kind) => this.chart(kind));
    const heat = Object.keys(series.nodes).length ? [this.heat()] : [];
    this.place.replaceChildren(...this.charts.map((chart) => chart.svg), ...heat);
    this.point(this.at ?? null);
  }

  chart({ name, lines, words }) {
    const { series, x } = this;
    const known = lines.filter(([key]) => series.totals[key]);
    const top = highest(known.flatMap(([key]) => series.totals[key]));
    const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.min(value, 1.06 * top)) / top;
    const svg = draw("svg", { class: "timeline", viewBox: `0 0 ${this.width} ${HEIGHT}`, width: this.width, height: HEIGHT, role: "img" });
    const last = (key) => series.totals[key].findLast((value) => value !== null);
    const title = known.map(([key, label]) => `${label} ${words(last(key))}`).join(", ");
    svg.append(draw("title", {}, `${name} over time; at the end: ${title}`));
    for (const value of [0, top / 2, top]) {
      svg.append(draw("line", { x1: LEFT, x2: this.width - RIGHT, y1: y(value), y2: y(value) }));
      svg.append(draw("text", { x: LEFT - 8, y: y(value) + 4, class: "up" }, words(value)));
    }
    this.axis(svg);
    svg.append(draw("text", { x: 2, y: 14, class: "unit" }, name));
    known.forEach(([key, label], i) => {
      svg.append(draw("text", { x: 110 + 120 * i, y: 14, style: `fill: ${STROKES[i]}` }, known.length > 1 ? label : ""));
      svg.append(draw("path", { d: lineThrough(series.at_s, series.totals[key], x, y), style: `stroke: ${STROKES[i]}` }));
    });
    for (const mark of this.marks) {
      if (mark.at_s < this.span[0] || mark.at_s > this.span[1]) continue;
      const drawn = draw("line", { x1: x(mark.at_s), x2: x(mark.at_s), y1: TOP - 6, y2: HEIGHT - BOTTOM, class: `mark ${mark.kind}` });
      drawn.append(draw("title", {}, mark.words));
      svg.append(drawn);
    }
    const cursor = draw("line", { y1: TOP - 8, y2: HEIGHT - BOTTOM, class: "cursor", x1: -9, x2: -9 });
    const said = draw("text", { y: 14, class: "said", x: this.width - RIGHT }, "");
    svg.append(cursor, said);
    svg.addEventListener("pointerdown", (event) => this.drag(svg, event));
    return { svg, cursor, said, known, words };
  }

  axis(svg) {
    const [first, last] = this.span;
    const count = Math.max(2, Math.min(6, Math.floor(this.width / 140)));
    for (let i = 0; i <= count; i += 1) {
      const seconds = first + ((last - first) * i) / count;
      const anchor = i === 0 ? "start" : i === count ? "end" : "middle";
      svg.append(draw("text", { x: this.x(seconds), y: HEIGHT - 5, style: `text-anchor: ${anchor}` }, clock(seconds)));
    }
  }

  // CPU of every node as a row of colours.
  heat() {
    const { series } = this;
    const names = Object.keys(series.nodes);
    const row = names.length > 24 ? 10 : 18;
    const canvas = make("canvas", { class: "heat", role: "img", "aria-label": "CPU of every node over time" });
    const height = names.length * row;
    const ratio = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: this.width * ratio, height: height * ratio });
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colour = (level) => ["--track", "#b5d3df", "#7fb2c6", "#4a8fa9", "--warm", "#d0693f", "--bad"]
      .map((name) => (name[0] === "-" ? style.getPropertyValue(name).trim() : name))[level];
    const colours = [0, 1, 2, 3, 4, 5, 6].map(colour);
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    names.forEach((name, r) => {
      const cpu = series.nodes[name].cpu;
      const limit = this.limits(name).cpu;
      pen.fillStyle = style.getPropertyValue("--muted");
      if (row > 10) pen.fillText(shorten(name, 9), 0, r * row + row - 5);
      let from = this.x(this.span[0]);
      for (let i = 0; i < cpu.length; i += 1) {
        const to = this.x(series.at_s[i]);
        const share = cpu[i] === null || !limit ? 0 : cpu[i] / limit;
        const level = cpu[i] === null ? 0 : [0.25, 0.5, 0.8, 0.95, 1 + 1e-9].findIndex((most) => share < most) + 1 || 6;
        pen.fillStyle = colours[level];
        pen.fillRect(from, r * row + 1, Math.max(1, to - from), row - 2);
        from = to;
      }
    });
    canvas.addEventListener("pointerdown", (event) => this.drag(canvas, event));
    return make("figure", {}, make("figcaption", {}, "CPU of nodes"), canvas);
  }

  drag(target, event) {
    const box = target.getBoundingClientRect();
    const move = (pointer) => {
      const x = Math.min(this.width - RIGHT, Math.max(LEFT, pointer.clientX - box.left));
      this.choose(this.back(x));
    };
    target.setPointerCapture(event.pointerId);
    target.addEventListener("pointermove", move);
    const end = () => target.removeEventListener("pointermove", move);
    target.addEventListener("pointerup", end, { once: true });
    target.addEventListener("pointercancel", end, { once: true });
    move(event);
  }

  // The cursor at a moment; null: none.
  point(at) {
    this.at = at;
    const i = at === null ? -1 : indexAt(this.series?.at_s ?? [], at);
    for (const { cursor, said, known, words } of this.charts) {
      const x = at === null ? -9 : this.x(at);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      said.textContent = i < 0 ? "" : known.map(([key]) => words(this.series.totals[key][i])).join(" · ");
    }
  }
}

// The highest value, unless it is a rare one: a cold first batch must not flatten all others.
function highest(values) {
  const known = values.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
  const [most, usual] = [known.at(-1) ?? 0, known[Math.floor(0.9 * (known.length - 1))] ?? 0];
  return (usual > 0 && most > 4 * usual ? 2 * usual : most) || 1;
}

const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function lineThrough(at, values, x, y) {
  let [drawn, pen] = ["", "M"];
  for (let i = 0; i < at.length; i += 1) {
    if (values[i] === null || values[i] === undefined) {
      pen = "M";
      continue;
    }
    drawn += `${pen}${x(at[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    pen = "L";
  }
  return drawn || "M0 0";
}

// The group that a moment falls into: the first that ends then or later.
export function indexAt(times, at) {
  let [low, high] = [0, times.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function figuresAt(series, i) {
  const figures = {};
  for (const [key, values] of Object.entries(series.totals)) figures[key] = values[i];
  for (const [name, kinds] of [...Object.entries(series.nodes), ...Object.entries(series.components)]) {
    for (const [kind, values] of Object.entries(kinds)) figures[`${kind}:${name}`] = values[i];
  }
  for (const [stream, { tuples, crossing }] of Object.entries(series.streams)) {
    figures[`stream:${stream}`] = tuples[i];
    figures[`crossing:${stream}`] = crossing[i];
  }
  return figures;
}
