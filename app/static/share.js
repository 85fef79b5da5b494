// Copying and saving what is on the page, made in the browser.

// The address without what only this frame needs.
function link() {
  const here = new URL(location.href);
  ["embed", "embed_options"].forEach(name => here.searchParams.delete(name));
  return here.href;
}

async function copy(button) {
  const text = button.dataset.copy === "link" ? link() : button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const said = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = said; }, 2000);
}

function save({ image, chart }) {
  const node = document.querySelector(`.${chart}`);
  const { width, height } = node._fullLayout;
  globalThis.Plotly.downloadImage(node, { format: image, width, height, scale: image === "png" ? 2 : 1, filename: chart.replace(/^kv-/, "kv-handoff-") });
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button[data-copy], button[data-image]");
  if (!button) return;
  if (button.dataset.image) save(button.dataset);
  else copy(button);
});

// On a phone the list of views covers the page: it closes once a view is chosen.
document.addEventListener("click", ({ target }) => {
  if (innerWidth >= 640 || !target.closest?.('[data-testid="stSidebarNavLink"]')) return;
  setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click(), 100);
});
