// A button that names a folded input unfolds it: More inputs, and the control itself with the focus on it.

const folder = () => document.querySelector(".st-key-more details");

function reach(name) {
  const control = document.querySelector(`.st-key-${name} input`);
  if (!control || !folder()?.open) return false;
  control.focus();
  control.scrollIntoView({ block: "center" });
  return true;
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button[data-open]");
  if (!button || !folder()) return;
  const { open } = button.dataset;
  if (!folder().open) folder().querySelector("summary").click();
  if (reach(open)) return;
  const waiting = new MutationObserver(() => { if (reach(open)) waiting.disconnect(); });
  waiting.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["open"] });
  setTimeout(() => waiting.disconnect(), 10_000);
});
