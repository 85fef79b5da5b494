// A chart on a page of its own: the same view and table as the explorer's, and a slider made here.

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
