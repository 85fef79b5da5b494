// Copying and saving what is on the page, made in the browser.

// The address without what only this frame needs, and with the version whose numbers it stands for.
function link() {
  const here = new URL(location.href), { version } = document.querySelector("[data-version]")?.dataset ?? {};
  ["embed", "embed_options"].forEach(name => here.searchParams.delete(name));
  if (version) here.searchParams.set("v", version);
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

const HEAD = 24, FOOT = 15, EDGE = 16; // pixels of a line above, of one below, and at the sides

// A text in lines of at most so many pixels. In an image the fonts of the page are not there: it is measured in the one that takes their place.
function wrapped(text, most, font) {
  const pen = Object.assign(document.createElement("canvas").getContext("2d"), { font });
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && pen.measureText(longer).width > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

const escaped = text => text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`);
const said = at => (document.querySelector(at)?.textContent ?? "").replace(/[ \n\t]+/g, " ").trim();

// The chart with the answer above it, and the scenario and the link below: an image goes where the page does not.
function captioned(node) {
  const { width, height, _size: size } = node._fullLayout;
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--kv-${name}`).trim();
  const most = width - 2 * EDGE, lines = wrapped(said("h1.kv-answer"), most, "bold 18px sans-serif");
  const made = `${said(".kv-said-line")}${said(".kv-away > :first-child")} · arithmetic, not a measurement`;
  const below = [made, link()].flatMap(text => wrapped(text, most, "11px sans-serif"));
  const top = HEAD * lines.length + HEAD, bottom = FOOT * below.length + HEAD;
  const margin = { l: size.l + EDGE, r: size.r + EDGE, t: size.t + top, b: size.b + bottom, pad: 0 };
  const wide = width + 2 * EDGE, x = -size.l / (wide - margin.l - margin.r);
  const note = { xref: "paper", yref: "paper", showarrow: false, xanchor: "left", align: "left", x };
  const notes = [
    { ...note, text: lines.map(line => `<b>${escaped(line)}</b>`).join("<br>"), y: 1, yanchor: "bottom", yshift: size.t + 8, font: { size: 18, color: colour("ink") } },
    { ...note, text: below.map(escaped).join("<br>"), y: 0, yanchor: "top", yshift: -size.b - 8, font: { size: 11, color: colour("muted") } },
  ];
  const layout = { ...node.layout, width: wide, height: height + top + bottom, margin, annotations: [...(node.layout.annotations ?? []), ...notes], paper_bgcolor: colour("bg"), plot_bgcolor: colour("bg") };
  return { data: node.data, layout };
}

function save({ image, chart }) {
  const figure = captioned(document.querySelector(`.${chart}`)), { width, height } = figure.layout;
  globalThis.Plotly.downloadImage(figure, { format: image, width, height, scale: image === "png" ? 2 : 1, filename: chart.replace(/^kv-/, "kv-handoff-") });
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
