// A chart on a page of its own: the same view and table as the explorer's, and sliders made here.

function slider({ name, label, positions, texts, at }) {
  const box = document.createElement("div");
  box.className = `st-key-${name} kv-range`;
  const head = document.createElement("label"), shown = document.createElement("b"), input = document.createElement("input");
  Object.assign(input, { type: "range", min: 0, max: positions.length - 1, step: 1, value: at, id: `range-${name}` });
  const show = () => {
    shown.textContent = texts[+input.value];
    input.setAttribute("aria-valuetext", positions[+input.value]);
  };
  input.addEventListener("input", show);
  show();
  head.append(label, shown);
  head.htmlFor = input.id;
  box.append(head, input);
  return box;
}

globalThis.kvHandoffChart = (root, data, mount) => {
  const place = name => root.querySelector(`[data-place="${name}"]`);
  data.sliders.forEach(one => place("sliders").append(slider(one)));
  const draw = () => {
    mount(place("answer"), data.answer);
    if (data.pinned) mount(place("pinned"), data.pinned);
    mount(place("chart"), data.chart);
  };
  draw();
  if (data.tables) mount(place("tables"), { sliders: data.tables, asked: {} });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
};
