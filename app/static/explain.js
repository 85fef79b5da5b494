// Explanations, opened where the number stands: under the row of a number or of the answer, inside a row of
// what is behind the numbers, and all of a view's in the fold below. The server makes one when it is asked
// for; only one is open at a time, and it follows the scenario.

globalThis.liveviewBus ??= new EventTarget();
const store = (globalThis.liveviewStore ??= { sliders: {} });

let open; // { box, owner, root, figure, before }: the box of the explanation, and the button or row it belongs to

const answers = new Map(); // by address: what the server said, the last few
function answer(figure) {
  const { view = "", query = "", own = "" } = store.asked ?? {};
  const asked = new URLSearchParams({ view, query, figure, own, page: location.origin + location.pathname });
  const address = new URL(`explain?${asked}`, document.baseURI).href;
  if (!answers.has(address)) {
    const found = fetch(address).then(reply => (reply.status === 200 ? reply.json() : undefined)).catch(() => undefined);
    answers.set(address, found);
    found.then(said => said ?? answers.delete(address));
    if (answers.size > 40) answers.delete(answers.keys().next().value);
  }
  return answers.get(address);
}

const FAILED = { name: "No explanation", value: "", items: [{ tag: "p", children: ["The server did not answer; open the number again."] }] };

function button(text, look, label) {
  const node = Object.assign(document.createElement("button"), { type: "button", className: look, textContent: text });
  if (label) node.setAttribute("aria-label", label);
  return node;
}

// What a box holds: the figure with its value, the way back and out, and what the server said.
function filled(box, said) {
  const head = document.createElement("div"), name = document.createElement("b");
  head.className = "kv-explained-head";
  name.textContent = said.name;
  name.tabIndex = -1;
  head.append(name, said.value);
  const { before } = open ?? {};
  if (before?.length) head.append(Object.assign(button("Back", "kv-button"), { onclick: back }));
  if (box.dataset.closes) head.append(Object.assign(button("Close", "kv-button", `Close the explanation of ${said.name}`), { onclick: () => close(true) }));
  box.setAttribute("aria-label", `${said.name}, explained`);
  const body = Object.assign(document.createElement("div"), { className: "kv-explained-body" });
  body.append(...said.items.map(store.element));
  box.replaceChildren(head, body);
}

async function show(figure, { focus = false } = {}) {
  const mine = open, asked = (mine.asked ?? 0) + 1;
  Object.assign(mine, { figure, asked });
  mine.owner.setAttribute("aria-busy", "true");
  const said = (await answer(figure)) ?? FAILED;
  if (mine.asked !== asked) return; // another was asked for meanwhile
  mine.owner.removeAttribute("aria-busy");
  if (open !== mine) return;
  mine.owner.classList.toggle("kv-asked", said !== FAILED);
  still(mine.owner, () => {
    filled(mine.box, said);
    put(mine);
  });
  dim();
  if (focus) mine.box.querySelector("b").focus({ preventScroll: true });
}

// What was pressed stays where it is while the page grows or shrinks under it: a browser may hold on to something below.
function still(owner, change) {
  const page = owner.closest('[data-testid="stMain"]') ?? document.documentElement, { top } = owner.getBoundingClientRect();
  if (top < 0 || top > innerHeight) return change();
  page.style.overflowAnchor = "none";
  change();
  requestAnimationFrame(() => requestAnimationFrame(() => { page.style.overflowAnchor = ""; }));
}

// Under the term or heading that the number stands in; in a row, at its end.
function put({ box, owner }) {
  if (box.isConnected) return;
  if (owner.matches("details")) owner.append(box);
  else (owner.closest(".kv-term, h1") ?? owner.parentElement).after(box);
}

function start(owner, figure) {
  close();
  const box = Object.assign(document.createElement("section"), { className: "kv-explained" });
  if (!owner.matches("details")) box.dataset.closes = "yes";
  open = { box, owner, figure, before: [], root: owner.closest(".liveview") };
  if (owner.matches("button")) owner.setAttribute("aria-expanded", "true");
  owner.classList.add("kv-asked");
  return show(figure);
}

function close(focus = false) {
  if (!open) return;
  const { box, owner } = open;
  open = undefined;
  still(owner, () => box.remove());
  owner.removeAttribute("aria-busy");
  if (owner.matches("details")) owner.open = false;
  else owner.setAttribute("aria-expanded", "false");
  if (focus) (owner.querySelector("summary") ?? owner).focus({ preventScroll: true });
}

function back() {
  show(open.before.pop(), { focus: true });
}

// A value inside an explanation that has one of its own takes its place; in the fold, it is another row.
function inside(target, figure) {
  const row = target.closest(".kv-explain-fold")?.querySelector(`details[data-figure="${CSS.escape(figure)}"]`);
  if (row) {
    row.open = true;
    row.querySelector("summary").focus();
  } else if (open) {
    open.before.push(open.figure);
    show(figure, { focus: true });
  }
}

document.addEventListener("click", ({ target }) => {
  const pressed = target.closest?.("button[data-explain]");
  if (!pressed) return;
  const { explain } = pressed.dataset;
  if (pressed.closest(".kv-explained, .kv-explain-fold")) inside(pressed, explain);
  else if (open?.owner === pressed) close();
  else start(pressed, explain);
});

document.addEventListener("keydown", ({ key, target }) => {
  if (key === "Escape" && open && (open.box.contains(target) || open.owner === target)) close(true);
});

// What a press is about to open is asked for at once.
document.addEventListener("pointerdown", ({ target }) => {
  const figure = target.closest?.("button[data-explain]")?.dataset.explain ?? target.closest?.("details[data-explains] > summary")?.parentElement.dataset.explains;
  if (figure && store.asked) answer(figure);
}, { capture: true, passive: true });

document.addEventListener("toggle", ({ target }) => {
  const { explains, explainAll, figure } = target.dataset ?? {};
  if (explains && target.open && open?.owner !== target) start(target, explains);
  else if (open?.owner === target && !target.open) close();
  if (explainAll !== undefined && target.open) unfold(target);
  if (figure && target.open) close();
}, { capture: true });

// The fold with all figures of the view.
async function unfold(fold) {
  const said = (await answer("")) ?? FAILED;
  if (!fold.isConnected) return;
  const was = fold.querySelector("details[open]")?.dataset.figure;
  const rows = said.items.map(store.element), list = document.createElement("div");
  list.append(...rows);
  rows.filter(row => was && row.dataset.figure === was).forEach(row => { row.open = true; });
  fold.querySelector(":scope > div")?.remove();
  fold.append(list);
}

// Pale while a slider stands elsewhere than what is explained.
const folds = () => document.querySelectorAll(".kv-explain-fold > div");
function dim() {
  const stands = Object.entries(store.asked?.at ?? {}).every(([slider, text]) => {
    const shown = document.querySelector(`.st-key-${slider} input[type=range]`)?.getAttribute("aria-valuetext");
    return shown == null || shown === text;
  });
  for (const node of [...(open ? [open.box] : []), ...folds()]) node.classList.toggle("kv-stale", !stands);
}
globalThis.liveviewBus.addEventListener("move", () => { if (open || folds().length) dim(); });

// Another scenario: the number may have been drawn anew, and what is open is asked for again.
let at;
globalThis.liveviewBus.addEventListener("tables", () => {
  const { view, query, own } = store.asked ?? {}, now = JSON.stringify([view, query, own]);
  if (open && !open.owner.isConnected) {
    const again = open.root.isConnected && open.root.querySelector(`:is(button[data-explain="${CSS.escape(open.before[0] ?? open.figure)}"], details[data-explains])`);
    if (!again || !again.matches(open.owner.tagName)) close();
    else {
      open.owner = again;
      if (again.matches("button")) again.setAttribute("aria-expanded", "true");
    }
  }
  dim();
  if (now === at) return;
  at = now;
  if (open) show(open.figure);
  for (const fold of document.querySelectorAll(".kv-explain-fold[open]")) unfold(fold);
});
