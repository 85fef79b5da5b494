// A button that names a folded input unfolds it: More inputs, and the control itself with the focus on it.

const folder = () => document.querySelector(".st-key-more details");
const field = name => document.querySelector(`.st-key-${name} input`);
const HOLD = 3_000; // ms in which inputs above may still come and push it down

function reach(name) {
  const control = field(name);
  if (!control || !folder()?.open) return false;
  control.focus({ preventScroll: true });
  control.scrollIntoView({ block: "center", behavior: "instant" });
  return true;
}

// Keep it in the middle, with the focus where nobody has taken it elsewhere, until the inputs have come or a hand is at the page.
function hold(name) {
  const end = new AbortController();
  const watch = new ResizeObserver(() => {
    const taken = document.activeElement;
    if (taken && taken !== document.body && taken !== field(name)) field(name)?.scrollIntoView({ block: "center", behavior: "instant" });
    else reach(name);
  });
  end.signal.addEventListener("abort", () => watch.disconnect());
  watch.observe(folder());
  for (const hand of ["pointerdown", "wheel", "touchmove", "keydown"]) addEventListener(hand, () => end.abort(), { capture: true, passive: true, signal: end.signal });
  setTimeout(() => end.abort(), HOLD);
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button[data-open]");
  if (!button || !folder()) return;
  const { open } = button.dataset;
  if (!folder().open) folder().querySelector("summary").click();
  if (reach(open)) return hold(open);
  const waiting = new MutationObserver(() => {
    if (!reach(open)) return;
    waiting.disconnect();
    hold(open);
  });
  waiting.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["open"] });
  setTimeout(() => waiting.disconnect(), 10_000);
});
