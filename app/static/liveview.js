// Charts and texts filled from a table at a slider's position. No formula here: Python made every value.
//
// A spec is plain JSON in which {"$at": name} stands for the table's value at the current position
// ("$i" picks an element of it), {"$col": name} for the whole column and {"$c": name} for a colour of
// the current theme.

export function fill(spec, table, at, colours) {
  if (Array.isArray(spec)) return spec.map(item => fill(item, table, at, colours));
  if (spec === null || typeof spec !== "object") return spec;
  if ("$at" in spec) {
    const value = table[spec.$at][at];
    return fill("$i" in spec ? value[spec.$i] : value, table, at, colours);
  }
  if ("$col" in spec) return table[spec.$col];
  if ("$c" in spec) return colours[spec.$c];
  return Object.fromEntries(Object.entries(spec).map(([key, value]) => [key, fill(value, table, at, colours)]));
}

// One bus a page: every view hears every slider.
const bus = (globalThis.liveviewBus ??= new EventTarget());

let plotlyLoading;
function plotly(url) {
  plotlyLoading ??= globalThis.Plotly
    ? Promise.resolve(globalThis.Plotly)
    : new Promise((resolve, reject) => {
        const src = new URL(url, document.baseURI).href;
        const script = Object.assign(document.createElement("script"), { src });
        script.onload = () => resolve(globalThis.Plotly);
        script.onerror = () => { plotlyLoading = undefined; reject(Error(`${src} did not load`)); };
        document.head.append(script);
      });
  return plotlyLoading;
}

function isDark(node) {
  const background = getComputedStyle(node).getPropertyValue("--st-background-color").trim();
  const hex = /^#([0-9a-f]{6})$/i.exec(background);
  if (!hex) return matchMedia("(prefers-color-scheme: dark)").matches;
  const value = parseInt(hex[1], 16);
  return (value >> 16) + ((value >> 8) & 255) + (value & 255) < 384;
}

// ---- text blocks: elements built once, their dynamic texts replaced -------------------------------

const ATTRIBUTES = new Set(["class", "id", "role", "title", "href", "target", "rel", "scope", "colspan", "style", "tabindex", "open", "for", "name"]);

function element(spec, watch) {
  if (typeof spec === "string") return document.createTextNode(spec);
  if ("$at" in spec) {
    const node = document.createTextNode("");
    watch.push((table, at) => { node.data = String(table[spec.$at][at]); });
    return node;
  }
  const node = document.createElement(spec.tag ?? "span");
  for (const [name, value] of Object.entries(spec)) {
    if (!ATTRIBUTES.has(name) && !name.startsWith("aria-") && !name.startsWith("data-")) continue;
    if (name === "href" && !/^(https?:|[?#/.])/.test(value)) continue;
    if (typeof value === "object") watch.push((table, at) => node.setAttribute(name, table[value.$at][at]));
    else node.setAttribute(name, value);
  }
  if (spec.parts) watch.push((table, at) => node.replaceChildren(...table[spec.parts.$at][at].map(part)));
  for (const child of spec.children ?? []) node.append(element(child, watch));
  return node;
}

function part([text, meaning]) {
  if (!meaning) return document.createTextNode(text);
  const node = document.createElement("span");
  node.className = `kv-${meaning}`;
  node.textContent = text;
  return node;
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
        if (isIntersecting && target.stale) this.draw([target]);
      }
    }, { rootMargin: "200px" });
    this.resized = new ResizeObserver(() => this.schedule());
    this.resized.observe(root);
    this.hear = event => { if (this.data?.sliders[event.detail.slider]) this.show(event.detail); };
    bus.addEventListener("move", this.hear);
  }

  update(data) {
    globalThis.liveviewProbe?.push(["update", performance.now(), data.main, data.items.length]);
    const before = this.data?.items ?? [];
    this.data = data;
    this.current = { slider: data.main, at: data.sliders[data.main].at };
    this.build(data.items, before);
    this.follow?.forEach(observer => observer.disconnect());
    this.follow = Object.entries(data.sliders).flatMap(([name, slider]) => this.observe(name, slider));
    if (data.say && this.said.textContent !== data.say) this.said.textContent = data.say;
    if (data.url !== undefined) keepUrl(data.url);
    return this.draw(this.charts());
  }

  // Elements stay where their spec is the same; a chart stays whatever becomes of its spec.
  build(items, before) {
    const old = this.items;
    this.items = items.map((item, k) => {
      const was = old[k];
      if (was && item.wide && before[k]?.wide) {
        was.node.figure = item;
        return was;
      }
      if (was && JSON.stringify(item) === JSON.stringify(before[k])) return was;
      return item.wide ? { node: this.chart(item), watch: [] } : this.text(item);
    });
    old.filter(was => !this.items.includes(was)).forEach(({ node }) => this.forget(node));
    const nodes = [...(this.data.say ? [this.said] : []), ...this.items.map(({ node }) => node)];
    if (nodes.length !== this.root.childNodes.length || nodes.some((node, k) => node !== this.root.childNodes[k])) this.root.replaceChildren(...nodes);
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
    return node;
  }

  forget(node) {
    if (!node.figure) return;
    this.near.unobserve(node);
    globalThis.Plotly?.purge(node);
  }

  charts() { return this.items.map(({ node }) => node).filter(node => node.figure); }

  // A native slider changes its aria-valuetext while it is dragged, long before it reports a value.
  observe(name, slider) {
    const native = document.querySelector(slider.observe);
    if (!native) return [];
    const read = () => slider.positions.indexOf(native.querySelector("input[type=range]")?.getAttribute("aria-valuetext"));
    const observer = new MutationObserver(() => this.say(name, read()));
    observer.observe(native, { subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] });
    const now = read();
    if (name === this.data.main && now >= 0) this.current.at = now;
    return [observer];
  }

  say(slider, at) {
    if (at < 0 || (globalThis.liveviewLast?.slider === slider && globalThis.liveviewLast.at === at)) return;
    globalThis.liveviewLast = { slider, at };
    globalThis.liveviewProbe?.push(["input", performance.now(), slider, at]);
    bus.dispatchEvent(new CustomEvent("move", { detail: { slider, at } }));
  }

  show(current) {
    this.current = current;
    this.schedule();
  }

  schedule() {
    if (this.queued || !this.data) return;
    const draw = () => { this.queued = undefined; this.draw(this.charts()); };
    this.queued = requestAnimationFrame(this.data.later ? () => { this.queued = requestAnimationFrame(draw); } : draw);
  }

  async draw(nodes) {
    const { slider, at } = this.current, { table } = this.data.sliders[slider], began = performance.now();
    for (const { watch } of this.items) for (const set of watch) set(table, at);
    if (!nodes.length) return this.probe(slider, at, 0);
    const library = await plotly(this.data.plotly);
    const mode = isDark(this.root) ? "dark" : "light";
    const { colours, template } = this.data.themes[mode];
    await Promise.all(nodes.map(node => {
      node.stale = node.near === false;
      if (node.stale || !node.isConnected) return undefined;
      const figure = node.figure[node.clientWidth < 640 ? "narrow" : "wide"] ?? node.figure.wide;
      const layout = { ...fill(figure.layout, table, at, colours), template, width: node.clientWidth || undefined };
      node.style.minHeight = `${layout.height}px`;
      node.setAttribute("aria-label", fill(node.figure.alt, table, at, colours));
      return library.react(node, fill(figure.data, table, at, colours), layout, { displayModeBar: false, responsive: false });
    }));
    this.probe(slider, at, nodes.length, performance.now() - began);
  }

  // Measurements ask when a move has been painted: after the frame that follows its drawing.
  probe(slider, at, charts, spent = 0) {
    if (globalThis.liveviewProbe) requestAnimationFrame(() => globalThis.liveviewProbe?.push(["painted", performance.now(), slider, at, charts, spent]));
  }

  close() {
    bus.removeEventListener("move", this.hear);
    this.near.disconnect(); this.resized.disconnect();
    this.follow?.forEach(observer => observer.disconnect());
    this.charts().forEach(node => globalThis.Plotly?.purge(node));
  }
}

// The address names the scenario; keys that are not the scenario's (embed, theme) stay.
function keepUrl({ query, keys }) {
  const now = new URLSearchParams(location.search), next = new URLSearchParams(query);
  for (const [key, value] of now) if (!keys.includes(key)) next.append(key, value);
  const search = next.toString();
  if (search !== now.toString()) history.replaceState(history.state, "", location.pathname + (search ? `?${search}` : "") + location.hash);
}

const views = new WeakMap();

export function mount(root, data) {
  if (!views.has(root)) views.set(root, new View(root));
  views.get(root).update(data);
  return () => { views.get(root)?.close(); views.delete(root); };
}

export default ({ data, parentElement }) => mount(parentElement.querySelector(".liveview"), data);
