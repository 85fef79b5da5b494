"""What is drawn in a drag, where texts that stay are not set again, is what would be drawn anew."""

import pytest

pytestmark = pytest.mark.browser

COMPARE = r"""async () => {
  const SEEN = ".trace text, .trace path, .shapelayer path, .infolayer text, .xaxislayer-above text";
  const marks = node => [...node.querySelectorAll(SEEN)]
    .filter(mark => mark.tagName !== "text" || mark.textContent)
    .map(mark => [mark.textContent, mark.getAttribute("d"), mark.getAttribute("x"), mark.getAttribute("y"), mark.getAttribute("transform"),
      mark.parentNode.getAttribute("transform"), mark.style.cssText, mark.closest("g.trace")?.style.opacity,
      ...[...mark.querySelectorAll("tspan")].map(line => line.outerHTML)].join(" ").replace(/url\([^)]*\)/, "pattern"));
  const found = { charts: 0, texts: 0, other: [], arrays: [] };
  for (const node of [...document.querySelectorAll(".liveview-chart")].filter(node => node._fullData && !node.stale)) {
    const beside = document.createElement("div");
    node.parentNode.append(beside);
    beside.style.cssText = "position:absolute;left:0;top:0;visibility:hidden";
    const copy = JSON.parse(JSON.stringify({ data: node.data, layout: node.layout }));
    await Plotly.newPlot(beside, copy.data, copy.layout, { displayModeBar: false });
    const [here, anew] = [marks(node), marks(beside)];
    found.charts += 1;
    found.texts += node.querySelectorAll("g.textpoint").length;
    if (here.length !== anew.length) found.other.push([here.length, anew.length]);
    found.other.push(...here.flatMap((mark, k) => (mark === anew[k] ? [] : [[mark, anew[k]]])));
    for (const trace of node._fullData) {
      const told = Plotly.PlotSchema.findArrayAttributes.asked(trace).join();
      if (told !== trace._arrayAttrs.join()) found.arrays.push([told, trace._arrayAttrs]);
    }
    Plotly.purge(beside);
    beside.remove();
  }
  return found;
}"""


@pytest.mark.parametrize("view", ["/?overlap=layer", "/interconnects"])
def test_a_chart_after_a_drag_is_as_if_drawn_anew(visit, view):
    one = visit().open(view)
    one.drag("prompt_tokens", (0.3, 0.9, 0.1, 0.45))
    found = one.page.evaluate(COMPARE)
    assert found["charts"]
    assert found["texts"]
    assert (found["other"], found["arrays"]) == ([], [])
    assert one.errors == []
