// A number that is a button opens its explanation: the fold below the picture, unfolded at that figure.

const fold = () => document.querySelector(".st-key-explain_fold details");

function show(figure) {
  const row = fold()?.querySelector(`details[data-figure="${CSS.escape(figure)}"]`);
  if (!row || !fold().open) return false;
  row.open = true;
  row.querySelector("summary").focus({ preventScroll: true });
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  row.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
  return true;
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button[data-explain]");
  if (!button || !fold()) return;
  const { explain } = button.dataset;
  if (!fold().open) fold().querySelector("summary").click();
  if (show(explain)) return;
  const waiting = new MutationObserver(() => { if (show(explain)) waiting.disconnect(); });
  waiting.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["open"] });
  setTimeout(() => waiting.disconnect(), 10_000);
});
