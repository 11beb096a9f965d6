// Plans that are worked out in the page: what if, and from nothing.
import { get, send, token } from "./api.js";
import { duration, make, number } from "./figures.js";

let choices = null;
const schedulers = async () => (choices ??= await get("schedulers"));
const NEEDS = "This works something out, so it needs the token: open the address that was printed at the start.";

const field = (label, control, hint) => make("label", { class: "field" }, make("span", {}, label), control, hint ? make("small", {}, hint) : "");
const select = (name, options, chosen) =>
  make("select", { name }, ...options.map((one) => make("option", { value: one, selected: one === chosen }, one)));

function plannerFields({ schedulers: known, objectives }) {
  return [
    field("Scheduler", make("select", { name: "by" },
      ...["headrace", ...known.filter((one) => one !== "headrace")].map((one) => make("option", { value: one }, one)),
      make("option", { value: "*" }, "all of them, compared"))),
    field("Objective", select("objective", objectives, "traffic")),
    make("label", { class: "check" }, make("input", { type: "checkbox", name: "simulate" }), " simulate it too"),
  ];
}

const asked = (form, known) => {
  const by = form.elements.by.value;
  return { by: by === "*" ? known.schedulers : [by], objective: form.elements.objective.value,
    simulate: form.elements.simulate.checked, seconds: by === "*" ? 60 : 20 };
};

// Ask for a job, follow it to its end, show what came of it; it can be stopped.
async function doJob(request, place, extras = () => []) {
  const status = make("p", { class: "lead", role: "status" }, "Working ..");
  const stop = make("button", { type: "button" }, "Stop");
  place.replaceChildren(make("section", {}, status, make("p", { class: "buttons" }, stop)));
  try {
    let job = await send("POST", "jobs", request);
    stop.addEventListener("click", () => send("DELETE", `jobs/${job.id}`).catch(() => null));
    const began = performance.now();
    while (job.state === "waiting" || job.state === "working") {
      await new Promise((resolve) => setTimeout(resolve, 300));
      status.textContent = `${job.state === "waiting" ? "Waiting for another job" : "Working"} .. ${duration((performance.now() - began) / 1000)}`;
      job = await get(`jobs/${job.id}`);
    }
    if (job.error) throw Object.assign(new Error(job.error.message), job.error);
    const drawn = make("div", {});
    drawn.innerHTML = job.answer.html + (job.answer.simulation_html ?? ""); // escaped by the server
    choosePlans(drawn);
    place.replaceChildren(...extras(job), drawn);
    place.querySelector("h1, h2")?.scrollIntoView({ block: "nearest" });
    return job;
  } catch (error) {
    place.replaceChildren(make("div", { class: "alarm", role: "alert" },
      make("p", {}, make("strong", {}, "No plan. "), error.message), error.fix ? make("p", {}, `What would help: ${error.fix}`) : ""));
    return null;
  }
}

// As the script of a report does: one plan of a comparison at a time.
function choosePlans(place) {
  const chooser = place.querySelector("#plan");
  if (!chooser) return;
  const show = () => {
    for (const one of place.querySelectorAll("[data-plan]")) one.hidden = one.dataset.plan !== chooser.value;
  };
  chooser.parentElement.hidden = false;
  chooser.addEventListener("change", show);
  show();
}

export async function showWhatIf(place, overview) {
  const known = await schedulers();
  const result = make("div", { class: "result" });
  const nodes = overview.nodes.slice(0, 200);
  const kind = select("kind", overview.kinds, overview.kinds[0]);
  let catalogText = null;
  const catalog = make("input", { type: "file", accept: ".yaml,.yml,.json", onchange: async () => {
    catalogText = await catalog.files[0]?.text();
    const types = /^catalog:\s*$([\s\S]*?)(?=^\S|$(?![\s\S]))/m.exec(catalogText ?? "")?.[1].match(/^ {2}[^\s#][^:]*(?=:)/gm) ?? [];
    kind.append(...types.map((one) => make("option", { value: one.trim() }, one.trim())));
  } });
  const form = make("form", { class: "form" },
    field("All rates times", make("input", { name: "rate", type: "number", min: "0.01", max: "1000", step: "any", value: "1" })),
    field("Without nodes", make("select", { name: "without", multiple: true, size: String(Math.min(5, nodes.length || 1)) },
      ...nodes.map((one) => make("option", { value: one }, one))), "several: with Ctrl"),
    field("Add machines", make("input", { name: "count", type: "number", min: "0", max: "1000", value: "0" })),
    field("of the kind", kind), field("more kinds: a catalog file", catalog),
    ...plannerFields(known),
    make("button", { class: "act", disabled: !token() }, "Try it"),
    token() ? "" : make("p", { class: "lead" }, NEEDS));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { rate, without, count } = form.elements;
    const change = { without: [...without.selectedOptions].map((one) => one.value) };
    if (Number(rate.value) !== 1) change.rate_factor = Number(rate.value);
    if (kind.value && Number(count.value) > 0) change.add = { [kind.value]: Number(count.value) };
    const offered = catalogText ? { catalog: catalogText } : {};
    await doJob({ run: overview.id, change, ...offered, ...asked(form, known) }, result, (job) => [inForce(overview, job)]);
  });
  place.replaceChildren(
    make("section", {}, make("h2", {}, "What if"),
      make("p", { class: "lead" }, "On the problem as it is measured now. Nothing that runs is touched."), form), result);
}

function inForce(overview, job) {
  const plans = job.answer.plans;
  const usable = plans.map((one, i) => [one, i]).filter(([one, i]) => job.answer.sections?.[i] && one.report?.feasible);
  if (!usable.length) return "";
  if (!overview.takes_plans) {
    return make("p", { class: "lead" }, "The run takes no plans from here: it has ended, or was started without --adaptive or --advise.");
  }
  const said = make("span", { role: "status", class: "lead" });
  const act = async (number) => {
    try {
      const { plan } = await send("POST", `runs/${overview.id}/plan`, { job: job.id, number });
      said.textContent = `Handed to the run as ${plan}: it holds from the next batch on, if the run can take it.`;
    } catch (error) {
      said.textContent = error.message;
    }
  };
  return make("p", { class: "buttons" },
    ...usable.slice(0, 3).map(([one, i]) => make("button", { type: "button", class: "act", onclick: () => act(i) }, `Put the plan of ${one.scheduler} in force`)), said);
}

export async function showNew(place) {
  const [known, { examples }] = await Promise.all([schedulers(), get("examples")]);
  const result = make("div", { class: "result" });
  const files = [];
  const text = make("textarea", { name: "text", rows: "12", spellcheck: "false", placeholder: "format: headrace/1\ntopology:\n  .." });
  const list = make("p", { class: "lead", role: "status" });
  const take = async (dropped) => {
    files.length = 0;
    for (const one of dropped) files.push({ name: one.name, text: await one.text() });
    text.value = files.length === 1 ? files[0].text : "";
    list.textContent = files.map((one) => `${one.name}, ${number(one.text.length)} characters`).join("; ");
  };
  const chooser = make("select", { name: "example" }, make("option", { value: "" }, "choose .."),
    ...examples.map((one) => make("option", { value: one.name }, `${one.name}: ${one.about}`)));
  chooser.addEventListener("change", async () => {
    if (!chooser.value) return;
    const found = await get(`examples/${chooser.value}`);
    files.splice(0, files.length, ...found.files);
    text.value = files.length === 1 ? files[0].text : "";
    list.textContent = files.map((one) => one.name).join(", ");
  });
  text.addEventListener("input", () => {
    files.splice(0, files.length, { name: "pasted", text: text.value });
    list.textContent = "";
  });
  const picker = make("input", { type: "file", multiple: true, accept: ".yaml,.yml,.json", onchange: () => take(picker.files) });
  const form = make("form", { class: "form" },
    field("Start from an example", chooser), field("or choose files, or drop them here", picker), list,
    make("label", { class: "field wide" }, make("span", {}, "or paste"), text),
    ...plannerFields(known),
    make("button", { class: "act", disabled: !token() }, "Plan it"),
    token() ? "" : make("p", { class: "lead" }, NEEDS));
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => { event.preventDefault(); form.classList.remove("over"); take(event.dataTransfer.files); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!files.length) { list.textContent = "Choose an example, drop a file or paste one first."; return; }
    doJob({ files, ...asked(form, known) }, result);
  });
  place.replaceChildren(make("section", {}, make("h2", {}, "New plan"),
    make("p", { class: "lead" }, "A file of topology and cluster, planned and judged here. Nothing is kept."), form), result);
}

export async function showSpark(place, name) {
  const found = await get(`advice/${name}`);
  const said = make("p", { role: "status", class: "verdict" });
  const inputs = ["executors", "cores", "partitions"].map((key) => field(key, make("input", { name: key, type: "number", min: "1", max: "100000" })));
  const form = make("form", { class: "form" }, ...inputs,
    field("machines x times as fast", make("input", { name: "speed", type: "number", min: "0.01", step: "any", value: "1" })),
    make("label", { class: "check" }, make("input", { type: "checkbox", name: "no_stragglers" }), " no task slower than its size"),
    make("button", { class: "act", disabled: !token() }, "Replay it"), token() ? "" : make("p", { class: "lead" }, NEEDS));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const asks = { speed: Number(form.elements.speed.value) || 1, no_stragglers: form.elements.no_stragglers.checked };
    for (const key of ["executors", "cores", "partitions"]) {
      if (form.elements[key].value) asks[key] = Number(form.elements[key].value);
    }
    said.textContent = "Replaying ..";
    try {
      const answer = await send("POST", `advice/${name}/what-if`, asks);
      said.textContent = `${duration(answer.wall_s)} instead of ${duration(answer.was_s)}, ${number(answer.core_hours)} core-hours.`;
    } catch (error) {
      said.textContent = error.message;
    }
  });
  const drawn = make("div", {});
  drawn.innerHTML = found.html; // drawn by the server, which escapes every name
  place.replaceChildren(drawn, make("section", {}, make("h2", {}, "What if"), form, said));
}
