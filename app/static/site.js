// A static copy of the page: files of a scenario, drawn by the explorer's own view. Nothing is computed here.

const page = document.querySelector("main"), { view } = page.dataset;
const place = name => page.querySelector(`[data-place="${name}"]`);
const roots = [...page.querySelectorAll("[data-key]")];
let grid, shown, asking = 0; // what the copy holds; what is on the page; the number of the last question

// Some hosts unpack a file on its way, some do not.
async function read(path) {
  const reply = await fetch(path);
  if (!reply.ok) throw Error(`${path}: ${reply.status}`);
  const blob = await reply.blob(), [first, second] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const zipped = first === 0x1f && second === 0x8b;
  return new Response(zipped ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob).json();
}

// ---- which scenario ------------------------------------------------------------------------------

function inputs(query) {
  const whole = { ...grid.defaults };
  for (const [key, text] of new URLSearchParams(query)) {
    const value = text.trim().toLowerCase();
    if (key in whole) whole[key] = key === "model" ? grid.aliases[value] ?? value : value === "none" ? "" : value;
  }
  return whole;
}

const dtype = (value, model) => (value === "auto" ? grid.stored[model] ?? value : value);
const same = (key, one, other) => one[key] === other[key] || (key === "kv_dtype" && dtype(one[key], one.model) === dtype(other[key], one.model));
const missed = (asked, held) => Object.keys(grid.defaults).filter(key => !same(key, asked, held.inputs));
const matters = key => !grid.apart[view].includes(key); // some inputs play no part in this view

// How far a scenario is from the one asked for: the model counts most, then the link; of two numbers the nearer is better.
function distance(asked, held) {
  const weight = key => (matters(key) ? grid.weights[key] ?? 10 : 0.01);
  const far = key => Math.min(0.9, Math.abs(asked[key] - held.inputs[key]) / 1e3 || 0);
  return missed(asked, held).reduce((sum, key) => sum + weight(key) * (1 + far(key) / 10), 0);
}

function nearest(asked) {
  const found = grid.scenarios.map(held => [distance(asked, held), held]);
  return found.reduce((best, one) => (one[0] < best[0] ? one : best))[1];
}

// ---- sliders: each table moves one of them, the others stand where the scenario has them ------------

const ranges = () => [...place("sliders").querySelectorAll("input")];
const nameOf = range => range.id.replace(/^range-/, "");

// Where each slider stands, and what was asked of them and is not held.
function standing({ sliders }, asked) {
  const left = [];
  let off = false;
  const at = sliders.map(({ name, positions, at: own }) => {
    const wanted = Math.max(positions.indexOf(asked[name]), -1);
    const near = positions.reduce((best, text, k) => (Math.abs(text - asked[name]) < Math.abs(positions[best] - asked[name]) ? k : best), own);
    const to = wanted >= 0 ? wanted : near;
    if (wanted < 0 || (to !== own && off)) left.push([name, asked[name], positions[off ? own : to]]);
    if (to === own || off) return own;
    off = true;
    return to;
  });
  return { at, left };
}

function follow(range) {
  const slider = nameOf(range), now = position(slider);
  bus.dispatchEvent(new CustomEvent("move", { detail: now }));
}

// Put back the sliders that the moved one's table does not know; the views follow the moved one last.
function moved({ target }) {
  const others = shown.data.sliders.filter(one => one.name !== nameOf(target));
  const back = others.filter(one => document.getElementById(`range-${one.name}`).value !== String(one.at));
  for (const one of back) {
    const range = document.getElementById(`range-${one.name}`);
    range.value = one.at;
    range.dispatchEvent(new Event("input"));
  }
  if (back.length) queueMicrotask(() => follow(target));
  tell(shown.lacks);
}

// ---- drawing ---------------------------------------------------------------------------------------

function draw() {
  const { data } = shown;
  for (const root of roots) mount(root, { ...data.views[root.dataset.key], key: root.dataset.key, themes: grid.themes, plotly: grid.plotly });
}

function named(key, value) {
  if (value === "") return "the engine's";
  return grid.names[key]?.[value] ?? (/^\d{4,}$/.test(value) ? Number(value).toLocaleString("en-US") : value);
}

function tell(lacks) {
  const told = lacks.map(([key, asked, held]) => `${grid.labels[key]} ${named(key, asked)} (shown: ${named(key, held)})`);
  const boxes = [];
  const { prefill_tp: tp, prefill_accelerator: gpu } = shown.held.inputs;
  if (shown.refused) boxes.push(`${shown.refused[0].toUpperCase()}${shown.refused.slice(1)}. Shown: ${tp} × ${named("prefill_accelerator", gpu)} on each side.`);
  if (told.length) boxes.push(`This copy does not hold ${told.join(", ")}. `);
  place("notices").replaceChildren(...boxes.map(text => {
    const box = Object.assign(document.createElement("p"), { className: "kv-notice", textContent: text });
    if (grid.app) box.append(" ", Object.assign(document.createElement("a"), { href: liveAddress(shown.query), textContent: "Open it in the live explorer" }), ".");
    return box;
  }));
}

const liveAddress = query => `${grid.app}/${view === "one-request" ? "" : view}${query ? `?${query}` : ""}`;

// The query of what is on the page; what plays no part in this view stays as it was asked for.
function query() {
  const whole = { ...shown.held.inputs };
  for (const key of grid.apart[view]) whole[key] = shown.asked[key];
  for (const range of ranges()) whole[nameOf(range)] = range.getAttribute("aria-valuetext");
  return new URLSearchParams(Object.entries(whole).filter(([key, value]) => value !== grid.defaults[key])).toString();
}

function address(push = false) {
  const now = query(), tail = now ? `?${now}` : "";
  if (tail !== location.search) history[push ? "pushState" : "replaceState"](null, "", `${location.pathname}${tail}`);
  for (const link of document.querySelectorAll("a[data-to]")) link.href = `${link.dataset.to}.html${tail}`;
  for (const link of document.querySelectorAll("a[data-live]")) link.href = liveAddress(now);
}

async function show(asking_for, push = false) {
  const mine = (asking += 1), asked = inputs(asking_for), held = nearest(asked);
  page.setAttribute("aria-busy", "true");
  let data;
  try {
    data = await read(`${grid.data}/${view}/${held.name}.json.gz`);
  } catch {
    if (mine === asking) failed();
    return;
  }
  if (mine !== asking) return;
  page.removeAttribute("aria-busy");
  const { at, left } = standing(data, asked);
  const lacks = missed(asked, held).filter(key => matters(key) && !data.sliders.some(one => one.name === key)).map(key => [key, asked[key], held.inputs[key]]);
  const refused = grid.refused.find(one => grid.axes.every(key => same(key, one.inputs, asked)))?.reason;
  const full = Object.entries(asked).filter(([key, value]) => value !== grid.defaults[key]);
  shown = { held, data, asked, refused, lacks: refused ? lacks.filter(([key]) => !/_(tp|accelerator)$/.test(key)) : lacks, query: new URLSearchParams(full).toString() };
  for (const select of page.querySelectorAll("select")) select.value = held.inputs[select.dataset.keys.split(" ")[0]];
  place("sliders").replaceChildren(...data.sliders.map((one, k) => slider({ ...one, at: at[k] })));
  place("one").hidden = data.sliders.length < 2;
  draw();
  mount(place("tables"), { sliders: data.tables, asked: {} });
  const off = data.sliders.findIndex((one, k) => k > 0 && at[k] !== one.at);
  if (off > 0) follow(ranges()[off]);
  tell([...shown.lacks, ...left]);
  address(push);
}

function failed() {
  page.removeAttribute("aria-busy");
  const why = location.protocol === "file:" ? "These pages need a file server: a browser reads no data from disk. Try python -m http.server here." : "The data did not load; if the copy has changed meanwhile, load the page again.";
  place("notices").replaceChildren(Object.assign(document.createElement("p"), { className: "kv-notice", textContent: why }));
  if (shown) for (const select of page.querySelectorAll("select")) select.value = shown.held.inputs[select.dataset.keys.split(" ")[0]];
}

function chosen({ target }) {
  const next = new URLSearchParams(query());
  for (const key of target.dataset.keys.split(" ")) next.set(key, target.value);
  if (target.dataset.keys === "model") for (const key of grid.follows) next.delete(key);
  show(next.toString(), true);
}

async function start() {
  try {
    grid = await read(page.dataset.grid);
  } catch {
    failed();
    return;
  }
  for (const one of [...grid.scenarios, ...grid.refused]) one.inputs = inputs(one.query);
  place("controls").addEventListener("change", chosen);
  place("sliders").addEventListener("input", moved);
  place("sliders").addEventListener("change", () => address());
  addEventListener("popstate", () => show(location.search));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());
  page.addEventListener("click", event => {
    const link = event.target.closest?.('a[href^="?"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(link.getAttribute("href"), true);
    scrollTo({ top: 0 });
  });
  show(location.search);
}

// ---- the first page: search; a link of the app's opens its view ------------------------------------

function search({ target }) {
  const words = target.value.toLowerCase().split(/\s+/).filter(Boolean);
  const items = [...page.querySelectorAll("[data-find]")];
  for (const item of items) item.hidden = words.length ? !words.every(word => item.dataset.find.includes(word)) : "other" in item.dataset;
  for (const group of page.querySelectorAll("[data-group]")) group.hidden = !group.querySelector("[data-find]:not([hidden])");
  const found = items.filter(item => !item.hidden).length;
  place("found").textContent = words.length ? `${found || "Nothing"} found` : "";
}

function enter() {
  const asked = new URLSearchParams(location.search), to = asked.get("view");
  const keys = new Set(page.dataset.keys.split(" "));
  const views = page.dataset.views.split(" ");
  if (views.includes(to) || [...asked.keys()].some(key => keys.has(key))) {
    asked.delete("view");
    location.replace(`${views.includes(to) ? to : views[0]}.html${asked.size ? `?${asked}` : ""}`);
    return;
  }
  const box = page.querySelector("input[type=search]");
  box.addEventListener("input", search);
  if (box.value) search({ target: box });
}

document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
if (view) start();
else if (page.dataset.keys) enter();
else for (const link of document.querySelectorAll("a[data-to]")) link.href = `${link.dataset.to}.html${location.search}`;
