// Charts and texts filled from a table at a slider's position. No formula here: Python made every value.
//
// A spec is plain JSON in which {"$at": name} stands for a value at the current position ("$i" picks an
// element of it), {"$col": name} for a whole column, {"$c": name} for a colour
// of the current theme and {"$sum": steps} for numbers that are sent as their differences.
// A view comes with the values of the position it stands at; the table over all positions follows by
// itself, once for all views.
//
// What does not change keeps its identity: Plotly takes an array it has seen for unchanged, and then
// draws only what moved.

const movable = new WeakMap();
function moves(spec) {
  if (spec === null || typeof spec !== "object") return false;
  if (!movable.has(spec)) movable.set(spec, "$at" in spec || "$col" in spec || "$c" in spec || "$sum" in spec || Object.values(spec).some(moves));
  return movable.get(spec);
}

export function fill(spec, look, colours) {
  if (!moves(spec)) return spec;
  if (Array.isArray(spec)) return spec.map(item => fill(item, look, colours));
  if ("$at" in spec) {
    const all = look.at(spec.$at);
    return fill("$i" in spec ? all[spec.$i] : all, look, colours);
  }
  if ("$col" in spec) return look.col(spec.$col);
  if ("$c" in spec) return colours[spec.$c];
  if ("$sum" in spec) { let sum = 0; return spec.$sum.map(step => (sum += step)); }
  return Object.fromEntries(Object.entries(spec).map(([key, value]) => [key, fill(value, look, colours)]));
}

// The spec with its colours put in, its other placeholders kept: done once a theme.
function paint(spec, colours) {
  if (!moves(spec) || "$at" in spec || "$col" in spec) return spec;
  if ("$c" in spec) return colours[spec.$c];
  if (Array.isArray(spec)) return spec.map(item => paint(item, colours));
  return Object.fromEntries(Object.entries(spec).map(([key, value]) => [key, paint(value, colours)]));
}

// A column that never changes is sent once, as {"$same": value}.
const cell = (column, at) => (Array.isArray(column) ? column[at] : column.$same);

// One bus and one store of tables a page: every view hears every slider.
const bus = (globalThis.liveviewBus ??= new EventTarget());
const store = (globalThis.liveviewStore ??= { sliders: {} });
store.views ??= new Map(); // by key: what is mounted on the page
store.element ??= spec => element(spec, []); // a block that follows no slider

let plotlyLoading;
const load = src => new Promise((resolve, reject) => {
  const script = Object.assign(document.createElement("script"), { src });
  script.onload = () => resolve(globalThis.Plotly);
  script.onerror = () => { plotlyLoading = undefined; reject(Error(`${src} did not load`)); };
  document.head.append(script);
});

// The library may be here, on its way since the page began, or still to be asked for.
function plotly(url) {
  const here = () => load(new URL(url, document.baseURI).href);
  plotlyLoading ??= (globalThis.Plotly ? Promise.resolve(globalThis.Plotly) : globalThis.liveviewDrawer?.catch(here) ?? here()).then(remembering);
  return plotlyLoading;
}

// Plotly asks its whole schema, at every drawing, which of a trace's attributes are arrays. What the schema says of a trace of
// the same type, with arrays in the same places, it said before.
function remembering(library) {
  const schema = library.PlotSchema, find = schema?.findArrayAttributes;
  if (!find || find.asked) return library;
  const known = new Map();
  schema.findArrayAttributes = trace => {
    const places = arrays(trace), key = `${trace.type} ${places}`;
    if (!places) return find(trace);
    if (!known.has(key)) known.set(key, find(trace));
    return known.get(key);
  };
  schema.findArrayAttributes.asked = find;
  return library;
}

// Where a trace has arrays; nothing where one has objects, whose own attributes may be arrays.
function arrays(container, prefix = "", found = []) {
  for (const [name, value] of Object.entries(container)) {
    if (name[0] === "_" || value === null || typeof value !== "object") continue;
    if (!Array.isArray(value) && !ArrayBuffer.isView(value)) { if (!arrays(value, `${prefix}${name}.`, found)) return undefined; }
    else if (value[0]?.constructor === Object) return undefined;
    else found.push(prefix + name);
  }
  return found;
}

// It also sets every text anew, and once more when it styles the traces, which takes longer than all else: a text that is to
// stay as it stands is not found when it looks for those to set.
const foundIn = Element.prototype.querySelectorAll;
const drawnTexts = ({ __data__: [{ trace }], style }) => trace.mode === "text" && style.opacity === String(trace.opacity);
function textsStay(node) {
  for (const one of node._fullLayout?._visibleModules ?? []) {
    if (one.name !== "scatter" || !one.style || one.style.spares) continue;
    const style = one.style;
    one.style = graph => {
      graph.querySelectorAll = query => {
        const found = foundIn.call(graph, query);
        return query === "g.trace.scatter" ? [...found].filter(trace => !drawnTexts(trace)) : found;
      };
      try { style(graph); } finally { delete graph.querySelectorAll; }
    };
    one.style.spares = true;
  }
  for (const holder of foundIn.call(node, "g.textpoint")) {
    // Plotly takes out a text that is empty, and does not put it back when it is so no more.
    if (!holder.firstChild) holder.append(document.createElementNS("http://www.w3.org/2000/svg", "text"));
    if (Object.hasOwn(holder, "querySelectorAll")) continue;
    let stands;
    holder.querySelectorAll = query => {
      const told = query === "text" && wording(holder);
      if (told && told === stands) return [];
      if (query === "text") stands = told;
      return foundIn.call(holder, query);
    };
  }
}

// All that a text's drawing depends on: its own, its trace's, and where its lines begin if it has several.
function wording(holder) {
  const { trace } = holder.parentNode?.__data__?.[0] ?? {}, { __data__: point, firstChild: text } = holder;
  if (!trace || !point || !text || trace.texttemplate || trace.selectedpoints) return undefined;
  const { tx, tc, tf, tp, ts, tw, ty, tv, tC, tE, tS, mrc } = point;
  const lines = /<br/i.test(tx ?? trace.text) ? [text.getAttribute("x"), text.getAttribute("y")] : [];
  return JSON.stringify([tx ?? trace.text, tc, tf, tp, ts, tw, ty, tv, tC, tE, tS, mrc, trace.textfont, trace.textposition, ...lines]);
}

// The theme's background says it. Asked once for all that is drawn together: with elements anew in between, each asking costs
// the styles of the whole page.
let dark;
function isDark(node) {
  if (dark === undefined) {
    dark = looksDark(getComputedStyle(node).getPropertyValue("--st-background-color").trim());
    setTimeout(() => { dark = undefined; });
  }
  return dark;
}

function looksDark(background) {
  const hex = /^#([0-9a-f]{6})$/i.exec(background);
  if (!hex) return matchMedia("(prefers-color-scheme: dark)").matches;
  const value = parseInt(hex[1], 16);
  return (value >> 16) + ((value >> 8) & 255) + (value & 255) < 384;
}

// ---- text blocks: elements built once, their dynamic texts replaced -------------------------------

const ATTRIBUTES = new Set(["class", "id", "role", "title", "href", "target", "rel", "scope", "colspan", "style", "tabindex", "open", "for", "name", "type", "download"]);

function element(spec, watch) {
  if (typeof spec === "string") return document.createTextNode(spec);
  if ("$at" in spec) {
    const node = document.createTextNode("");
    watch.push(look => { node.data = String(fill(spec, look, {})); });
    return node;
  }
  if (("data-explain" in spec || "data-open" in spec) && !store.explains) spec = { children: spec.children }; // it opens nothing here
  const node = document.createElement(spec.tag ?? "span");
  for (const [name, value] of Object.entries(spec)) {
    if (!ATTRIBUTES.has(name) && !name.startsWith("aria-") && !name.startsWith("data-")) continue;
    if (name === "href" && !/^(https?:|mailto:|[?#/.])/.test(value)) continue;
    if (typeof value === "object") watch.push(look => node.setAttribute(name, look.at(value.$at)));
    else node.setAttribute(name, value);
  }
  if (spec.parts) watch.push(look => say(node, look.at(spec.parts.$at)));
  for (const child of spec.children ?? []) node.append(element(child, watch));
  return node;
}

// A sentence: its elements stay while only their texts change, so that a number that was opened stays so.
const said = new WeakMap();
function say(node, told) {
  const parts = joined(told);
  const shape = JSON.stringify(parts.map(([, ...rest]) => rest));
  if (said.get(node) !== shape) node.replaceChildren(...parts.map(part));
  else parts.forEach(([text, , , mark], k) => {
    const holder = mark ? node.childNodes[k].firstChild : node.childNodes[k];
    if (holder.textContent !== text) holder.textContent = text;
  });
  said.set(node, shape);
}

// A part with a meaning has its colour; one that names a figure is a number that opens its explanation, where the page has those.
// What ends a clause stays on the line of the number before it.
function joined(parts) {
  const found = [];
  for (const [text, ...rest] of parts) {
    const last = found.at(-1), mark = !(rest[0] || rest[1]) && (last?.[1] || last?.[2]) && /^[.,;:]/.test(text) ? text[0] : "";
    if (mark) last[3] = mark;
    if (text.length > mark.length) found.push([text.slice(mark.length), ...rest]);
  }
  return found;
}

function part([text, meaning, figure, mark]) {
  if (mark) {
    const line = Object.assign(document.createElement("span"), { className: "kv-joined" });
    line.append(part([text, meaning, figure]), mark);
    return line;
  }
  const opens = figure && store.explains;
  if (!meaning && !opens) return document.createTextNode(text);
  const node = document.createElement(opens ? "button" : "span");
  if (meaning) node.className = `kv-${meaning}`;
  node.textContent = text;
  if (!opens) return node;
  node.classList.add("kv-open");
  Object.assign(node, { type: "button", title: "Explain this number" });
  node.dataset.explain = figure;
  node.setAttribute("aria-expanded", "false");
  return node;
}

// A mark whose data carry an address opens it: another page beside, another scenario here. A finger has to come twice: first it reads.
const addressOf = node => node._hoverdata?.[0]?.customdata?.[1];
function openMark(node) {
  const address = addressOf(node), { touch, read } = node.press ?? {};
  if (touch && read !== address) return;
  node.press = { touch }; // Plotly makes a click of its own of a tap
  if (/^https:/.test(address)) window.open(address, "_blank", "noopener");
  else if (/^[?]/.test(address) && /^http/.test(location.protocol)) location.assign(address);
}

const paintings = new WeakMap(); // by figure: its layouts in the colours of a theme
function painted(figure, width, mode, colours) {
  if (!paintings.has(figure)) paintings.set(figure, {});
  return (paintings.get(figure)[width + mode] ??= paint(figure[width] ?? figure.wide, colours));
}

// ---- a view: blocks and figures joined to sliders ------------------------------------------------

class View {
  constructor(root) {
    this.root = root;
    this.items = [];
    this.said = Object.assign(document.createElement("div"), { className: "kv-say" });
    this.said.setAttribute("role", "status");
    this.near = new IntersectionObserver(entries => {
      for (const { target, isIntersecting } of entries) {
        target.near = isIntersecting;
        if (isIntersecting && target.stale) target === this.root ? this.schedule() : this.draw([target]);
      }
    }, { rootMargin: "200px" });
    this.resized = new ResizeObserver(() => this.schedule());
    this.resized.observe(root);
    this.near.observe(root);
    this.hear = ({ detail }) => this.move(detail);
    this.arrive = () => this.data && (inHand(this.data.main) || this.isThere()) && this.move(position(this.data.main), true);
    bus.addEventListener("move", this.hear);
    this.rest = () => (this.waits || this.current) && this.isThere() && this.move(position(this.data.main));
    bus.addEventListener("tables", this.arrive);
    bus.addEventListener("set", this.rest);
    this.free = () => this.root.stale && this.schedule();
    bus.addEventListener("free", this.free);
    this.print = () => this.data && this.draw(this.charts(), true);
    addEventListener("beforeprint", this.print);
  }

  update(data) {
    const mode = isDark(this.root), text = JSON.stringify(data);
    if (text === this.sent && mode === this.mode && !this.current) return;
    [this.sent, this.mode, this.current] = [text, mode, undefined];
    const before = this.data?.items ?? [];
    this.data = data;
    store.views.set(data.key, this);
    const fresh = this.build(data.items, before);
    if (data.say && this.said.textContent !== data.say) this.said.textContent = data.say;
    if (data.url !== undefined) keepUrl(data.url);
    const now = position(data.main);
    this.waits = now && now.text !== data.value && inHand(data.main);
    if (this.waits) {
      // The hand is further: the tables say it, those that are here or those that come. No text stands empty meanwhile.
      this.tell(fresh);
      this.move(now);
    } else if (data.later) this.schedule();
    else this.draw(this.charts());
  }

  // Whether the slider stands where the view was sent for.
  isThere() { return position(this.data.main)?.text === this.data.value; }

  // Follow a slider, where the table has what this view needs; `quiet` leaves out a position already shown.
  move(to, quiet = false) {
    const table = to && store.sliders[to.slider]?.table;
    if (!this.data || !table || to.at < 0 || store.sliders[to.slider].id !== this.data.tables[to.slider] || !Object.keys(this.data.now).every(name => name in table)) return;
    if (quiet && to.text === this.data.value && !this.current && !this.waits) return;
    [this.current, this.waits] = [to, false];
    this.root.classList.add("kv-current");
    // What is out of sight follows when it comes near, or when the slider is let go; the answer is read out from anywhere.
    if (grasped && this.root.near === false && !this.data.say) this.root.stale = true;
    else if (this.data.later || this.queued || this.drawn) this.schedule();
    else {
      // At once, once a frame: who waits for the frame gives away what is left of the one before.
      this.drawn = requestAnimationFrame(() => { this.drawn = undefined; });
      this.between = true;
      this.draw(this.charts());
    }
  }

  look() {
    const col = name => this.data.columns[name];
    if (!this.current) return { at: name => this.data.now[name], col };
    const { slider, at } = this.current, { table } = store.sliders[slider];
    return { at: name => cell(table[name], at), col };
  }

  // Elements stay where their spec is the same; a chart stays whatever becomes of its spec. What is new is returned.
  build(items, before) {
    const old = this.items;
    this.items = items.map((item, k) => {
      const was = old[k];
      if (was && item.wide && before[k]?.wide) {
        was.node.figure = item;
        return was;
      }
      if (was && JSON.stringify(item) === JSON.stringify(before[k])) return was;
      if (item.wide) return { node: this.chart(item), watch: [] };
      const text = this.text(item);
      if (was?.node.open && item.name === before[k].name) text.node.open = true; // what is unfolded stays so
      return text;
    });
    old.filter(was => !this.items.includes(was)).forEach(({ node }) => this.forget(node));
    const nodes = [...(this.data.say ? [this.said] : []), ...this.items.map(({ node }) => node)];
    if (nodes.length !== this.root.childNodes.length || nodes.some((node, k) => node !== this.root.childNodes[k])) this.root.replaceChildren(...nodes);
    return this.items.filter(item => !old.includes(item));
  }

  tell(items, look = this.look()) {
    for (const { watch } of items) for (const set of watch) set(look);
  }

  text(item) {
    const watch = [];
    return { node: element(item, watch), watch };
  }

  chart(item) {
    const node = document.createElement("div");
    node.className = `liveview-chart ${item.class ?? ""}`;
    node.setAttribute("role", "img");
    node.figure = item;
    this.near.observe(node);
    node.addEventListener("pointerdown", ({ pointerType }) => { node.press = { touch: pointerType === "touch", read: addressOf(node) }; }, { capture: true });
    node.addEventListener("click", () => openMark(node));
    return node;
  }

  forget(node) {
    if (!node.figure) return;
    this.near.unobserve(node);
    globalThis.Plotly?.purge(node);
  }

  charts() { return this.items.map(({ node }) => node).filter(node => node.figure); }

  schedule() {
    if (this.queued || !this.data) return;
    const draw = () => { this.queued = undefined; this.draw(this.charts()); };
    this.queued = requestAnimationFrame(this.data.later ? () => { this.queued = requestAnimationFrame(draw); } : draw);
  }

  // What is out of sight waits until it comes near, but on `paper`.
  async draw(nodes, paper = false) {
    const began = performance.now(), look = this.look();
    this.root.stale = false;
    this.tell(this.items, look);
    for (const node of this.charts()) node.setAttribute("aria-label", fill(node.figure.alt, look, {}));
    if (!nodes.length) return this.probe(0);
    let library;
    try {
      library = await plotly(this.data.plotly);
    } catch {
      return nodes.forEach(node => this.fail(node, look));
    }
    const mode = isDark(this.root) ? "dark" : "light";
    const { colours, template } = this.data.themes[mode];
    await Promise.all(nodes.map(node => {
      node.stale = node.near === false && !paper;
      if (node.stale || !node.isConnected) return undefined;
      const figure = painted(node.figure, node.clientWidth < 640 ? "narrow" : "wide", mode, colours);
      const layout = { ...fill(figure.layout, look, colours), template, width: node.clientWidth || undefined };
      node.style.minHeight = `${layout.height}px`;
      textsStay(node);
      return library.react(node, fill(figure.data, look, colours), layout, node._context ? undefined : { displayModeBar: false, responsive: false });
    }));
    return this.probe(nodes.length, performance.now() - began);
  }

  // A chart that cannot be drawn keeps its place and says what would help.
  fail(node, look) {
    const said = Object.assign(document.createElement("p"), { className: "kv-notice kv-notice-bad", textContent: "The chart could not be drawn, because the drawing library did not load. " });
    const again = Object.assign(document.createElement("button"), { className: "kv-button", type: "button", textContent: "Try again" });
    again.addEventListener("click", () => { node.replaceChildren(); node.setAttribute("role", "img"); this.draw([node]); });
    said.setAttribute("role", "alert");
    said.append(again);
    node.style.minHeight = `${fill(node.figure.wide.layout.height, look, {})}px`;
    node.setAttribute("role", "group");
    node.replaceChildren(said);
  }

  // Measurements ask when a move has been painted: when the frame after that of its drawing begins, which is the next one but one
  // for what is drawn between two.
  probe(charts, spent = 0) {
    const { slider, at } = this.current ?? { slider: this.data.main, at: -1 };
    const between = this.between;
    this.between = false;
    const painted = () => globalThis.liveviewProbe?.push(["painted", globalThis.liveviewFrame ?? performance.now(), slider, at, charts, spent]);
    if (globalThis.liveviewProbe) requestAnimationFrame(between ? () => requestAnimationFrame(painted) : painted);
  }

  close() {
    if (store.views.get(this.data?.key) === this) store.views.delete(this.data.key);
    bus.removeEventListener("move", this.hear);
    bus.removeEventListener("tables", this.arrive);
    bus.removeEventListener("set", this.rest);
    bus.removeEventListener("free", this.free);
    removeEventListener("beforeprint", this.print);
    this.near.disconnect();
    this.resized.disconnect();
    this.charts().forEach(node => globalThis.Plotly?.purge(node));
  }
}

// ---- tables over the sliders' positions, and the sliders themselves --------------------------------

const thumb = slider => document.querySelector(`.st-key-${slider} input[type=range]`)?.getAttribute("aria-valuetext");

// Where a slider's thumb stands: its text, and its index where the table is there.
function position(slider) {
  const text = thumb(slider);
  return text == null ? undefined : { slider, text, at: store.sliders[slider]?.positions.indexOf(text) ?? -1 };
}

const sent = {}; // by slider: its table as it was sent, { mark, packed }

// A table as it is sent, deflated, as text, each slider's by itself; one that came before is not sent again.
class Sent {
  update({ slider, mark, packed }) {
    sent[slider] = { mark, packed };
    bus.dispatchEvent(new Event("sent"));
  }

  close() {}
}

function arrived(slider, mark) {
  return new Promise(done => {
    const look = () => {
      if (sent[slider]?.mark !== mark) return;
      bus.removeEventListener("sent", look);
      done(sent[slider].packed);
    };
    bus.addEventListener("sent", look);
    look();
  });
}

async function unpacked(slider, mark) {
  const text = await arrived(slider, mark);
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
  const found = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  return { ...found, mark };
}

let grasped; // the slider that a pointer is down on
addEventListener("pointerdown", ({ target }) => { grasped = target.closest?.('[class*="st-key-"]:has(input[type=range])'); }, { capture: true, passive: true });
function letGo() {
  grasped = undefined;
  bus.dispatchEvent(new Event("free"));
}
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, letGo, { capture: true, passive: true });

// Whether a pointer or the keyboard has hold of a slider: then its thumb is ahead of what a run sends, else it follows that.
function inHand(slider) {
  const native = document.querySelector(`.st-key-${slider}`);
  return Boolean(native) && (grasped === native || native.contains(document.activeElement));
}

function dragged(to) {
  globalThis.liveviewProbe?.push(["input", performance.now(), to.slider, to.at]);
  bus.dispatchEvent(new CustomEvent("move", { detail: to }));
}

// The page is there once what stands above its controls is, and the sliders' heads: these may be drawn after the tables came.
const ABOVE = '.st-key-answer_view, .st-key-notices_view, .st-key-pinned_view, [class*="st-key-head_view_"]';
function revealed(until = performance.now() + 5_000) {
  const there = [...document.querySelectorAll(ABOVE)].every(node => node.querySelector(".liveview")?.firstChild);
  if (there || performance.now() > until) document.documentElement.classList.add("kv-loaded");
  else requestAnimationFrame(() => revealed(until));
}

class Tables {
  async update(data) {
    this.latest = data;
    const known = Object.values(store.sliders), sliders = Object.entries(data.sliders);
    const ready = sliders.map(([slider, one]) => (one.mark ? known.find(old => old.mark === one.mark) ?? unpacked(slider, one.mark) : one));
    const tables = ready.some(one => one instanceof Promise) ? await Promise.all(ready) : ready;
    if (this.latest !== data) return;
    this.close();
    store.sliders = Object.fromEntries(sliders.map(([slider, { id }], k) => [slider, { ...tables[k], id }]));
    store.asked = data.asked;
    if (!document.documentElement.classList.contains("kv-loaded")) revealed();
    this.observers = Object.keys(store.sliders).flatMap(slider => this.observe(slider));
    bus.dispatchEvent(new Event("tables"));
  }

  // A native slider changes its aria-valuetext while it is dragged, long before it reports a value.
  observe(slider) {
    const native = document.querySelector(`.st-key-${slider}`);
    if (!native) return [];
    let last = thumb(slider);
    const observer = new MutationObserver(() => {
      const now = position(slider);
      if (!now || now.text === last) return;
      last = now.text;
      if (inHand(slider)) return dragged(now);
      // Nobody's hand: a run set it, maybe by way of other values. Its views came with their own; who waited for it looks.
      bus.dispatchEvent(new Event("set"));
    });
    observer.observe(native, { subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] });
    return [observer];
  }

  close() {
    this.observers?.forEach(observer => observer.disconnect());
    this.observers = [];
  }
}

// The address names the scenario; keys that are not the scenario's (embed, theme) stay.
function keepUrl({ query, keys }) {
  const now = new URLSearchParams(location.search), next = new URLSearchParams(query);
  for (const [key, value] of now) if (!keys.includes(key)) next.append(key, value);
  const search = next.toString();
  if (search !== now.toString()) history.replaceState(history.state, "", location.pathname + (search ? `?${search}` : "") + location.hash);
}

const views = new WeakMap(); // by root: a View, the page's Tables, or one of them as sent

export function mount(root, data) {
  if (!views.has(root)) views.set(root, data.sliders ? new Tables() : data.mark ? new Sent() : new View(root));
  root.classList.remove("kv-current");
  views.get(root).update(data);
  return () => setTimeout(leave, 0, root);
}

// The page also ends what it has overtaken with newer data for the same place: only a place that is gone is left.
function leave(root) {
  const gone = views.get(root);
  if (!gone || root.isConnected) return;
  gone.latest = undefined;
  gone.close();
  views.delete(root);
}

export default ({ data, parentElement }) => mount(parentElement.querySelector(".liveview"), JSON.parse(new TextDecoder().decode(data)));
