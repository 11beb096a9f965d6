// Numbers as people read them: as figures.py writes them.
const NONE = "–";
const groups = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const digits = (value, count) => Number(value.toPrecision(count)).toString();

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (Math.abs(value) < 1e-9) return "0";
  if (Number.isInteger(value) || Math.abs(value) >= 999.95) return groups.format(value);
  return digits(value, 4);
}

export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  for (const [limit, unit, sign] of [[1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]]) {
    if (value >= limit) return `${digits(value / unit, 3)} ${sign}`;
  }
  return value < 100 ? digits(value, 3) : groups.format(value);
}

export function percent(share) {
  if (share === null || !Number.isFinite(share)) return NONE;
  const whole = 100 * share;
  return share > 0 && whole < 10 ? `${whole.toFixed(1).replace(/\.0$/, "")} %` : `${whole.toFixed(0)} %`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  if (seconds >= 100) return `${groups.format(seconds)} s`;
  return seconds >= 1 ? `${digits(seconds, 3)} s` : `${digits(1000 * seconds, 3)} ms`;
}

export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${digits(seconds / 3600, 3)} h` : `${digits(seconds / 86400, 3)} d`;
}

export function clock(seconds, day = false) {
  if (seconds < 1e6) return `${number(Math.round(seconds * 10) / 10)} s`; // simulated time starts at 0
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString("en-GB");
  return day ? `${at.toLocaleDateString("en-CA")} ${time}` : time;
}

// An element with text and attributes: nothing that comes from a file is ever read as markup.
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}
