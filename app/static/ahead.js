// Charts of another choice, asked for over plain HTTP as soon as a reader stays on one of a control's choices or
// touches it, and drawn once the choice is made; the page's own run follows and brings the same. Where this fails,
// that run is in time.

globalThis.liveviewBus ??= new EventTarget();
const store = (globalThis.liveviewStore ??= { sliders: {} });
store.views ??= new Map(); // by key: what is mounted on the page

const holder = name => document.querySelector(`.st-key-${name}`);

// What a control shows: a select's text, or the pressed button of a row.
function shown(name) {
  const node = holder(name);
  const select = node?.querySelector("input[role=combobox]");
  if (select) return select.getAttribute("aria-expanded") === "true" ? undefined : select.value;
  return node?.querySelector("[role=radio][aria-checked=true]")?.textContent.trim();
}

// The choice of an open list that the keys are on.
const activeIn = node => {
  const id = (node.closest?.("input[aria-activedescendant]") ?? node.querySelector?.("input[aria-activedescendant]"))?.getAttribute("aria-activedescendant");
  return id ? document.getElementById(id) : undefined;
};

let waiting; // the last request: { name, label, answer, stop }
let hand = {}; // the control that the reader's hand was on last, and when: a run changes controls too, which are no choices
const AT_ONCE = 1500; // milliseconds from a touch in which a control shows what was chosen
let made = false; // whether a choice was made that the page's run has yet to answer: `asked` does not know of it

function ask(name, label) {
  const { asked } = store;
  if (!asked?.view || !label || made || (waiting?.name === name && waiting.label === label)) return;
  waiting?.stop.abort();
  const stop = new AbortController();
  const query = new URLSearchParams({ view: asked.view, query: asked.query, name, label });
  const answer = fetch(new URL(`ahead?${query}`, document.baseURI), { signal: stop.signal })
    .then(reply => (reply.status === 200 ? reply.json() : undefined))
    .catch(() => undefined);
  waiting = { name, label, answer, stop };
}

async function chosen(name, label) {
  ask(name, label);
  const mine = made ? undefined : waiting;
  made = true;
  const found = await mine?.answer;
  if (!found || waiting !== mine) return;
  for (const [key, data] of Object.entries(found.views)) {
    store.views.get(key)?.update(data);
    store.views.get(key)?.root.classList.add("kv-current");
  }
}

// The control that a press or a key is on, and the choice that it is about to make.
function touched(target, chooses = true) {
  const option = target.closest?.("[role=option]");
  const name = store.asked?.names?.find(one => {
    const node = holder(one);
    return option ? node?.querySelector("input[aria-expanded=true]") : node?.contains(target);
  });
  hand = { name, time: performance.now() };
  if (!name || !chooses) return;
  if (option) ask(name, option.textContent.trim());
  else if (target.closest("[role=radio]")) ask(name, target.closest("[role=radio]").textContent.trim());
}

document.addEventListener("pointerdown", ({ target }) => touched(target), { capture: true, passive: true });
document.addEventListener("keydown", ({ key, target }) => {
  const option = key === "Enter" && activeIn(target);
  touched(option || target, Boolean(option));
}, { capture: true, passive: true });

// A choice that a reader stays on, with the pointer or the keys, is likely the next.
const STAYS = 60; // milliseconds
let staying;
function considers(option) {
  clearTimeout(staying);
  if (!option || option.getAttribute("aria-selected") === "true") return;
  staying = setTimeout(() => {
    const name = option.isConnected && store.asked?.names?.find(one => holder(one)?.querySelector("input[aria-expanded=true]"));
    if (name) ask(name, option.textContent.trim());
  }, STAYS);
}

document.addEventListener("pointerover", ({ target }) => considers(target.closest?.("[role=option]")), { capture: true, passive: true });

addEventListener("popstate", () => { hand = {}; });

// A swap changes controls that nobody touched: what follows is the run's alone.
document.addEventListener("click", ({ target }) => {
  if (target.closest?.(".st-key-do_swap")) store.asked = waiting = undefined;
}, { capture: true, passive: true });

let watched = [];
// Watch the controls whose choices the server can answer ahead; `asked` says which, and at which scenario.
function follow() {
  const asked = store.asked ?? {};
  waiting = undefined;
  made = false;
  watched.forEach(observer => observer.disconnect());
  watched = (asked.names ?? []).flatMap(name => {
    const node = holder(name);
    if (!node) return [];
    let last = shown(name);
    const observer = new MutationObserver(changes => {
      if (changes.some(({ attributeName }) => attributeName === "aria-activedescendant")) considers(activeIn(node));
      const now = shown(name);
      if (now === undefined || now === last) return;
      last = now;
      if (name === hand.name && performance.now() - hand.time < AT_ONCE) chosen(name, now);
    });
    observer.observe(node, { subtree: true, attributes: true, attributeFilter: ["aria-expanded", "aria-checked", "aria-activedescendant", "value"] });
    return [observer];
  });
}

globalThis.liveviewBus.addEventListener("tables", follow);
follow();
