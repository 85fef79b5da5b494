"""Axes drawn as labels: where Plotly would have put its ticks, in the axes' own units."""

import pytest

from app.charts.spec import fill
from app.charts.still import with_still_axes
from app.palette import LIGHT

ACROSS = {
    "type": "log",
    "range": [0, 4],
    "tickvals": [1, 100],
    "ticktext": ["1", "100"],
    "title": {"text": "FLOP per byte"},
    "fixedrange": True,
}
UPWARD = {"range": [0, 8], "tickvals": [2, 6], "fixedrange": True}


@pytest.mark.parametrize("upward", [True, False])
def test_ticks_grid_and_title_stand_where_the_axes_have_them(upward):
    words = {"type": "scatter", "mode": "text", "text": ["own"]}
    rule = {"type": "line"}
    spec = {"data": [{"type": "bar"}, words], "layout": {"height": 9, "xaxis": ACROSS, "yaxis": UPWARD, "shapes": [rule]}}
    still = fill(with_still_axes(spec, floor=0.0, upward=upward), {}, 0, LIGHT)
    bar, ticks, own = still["data"]
    assert (bar["type"], own) == ("bar", words)
    across = [("1", 1, 0.0), ("100", 100, 0.0), ("\u00a0<br>FLOP per byte", 100.0, 0.0)]
    assert list(zip(ticks["text"], ticks["x"], ticks["y"], strict=True)) == across + upward * [("2", 1.0, 2), ("6", 1.0, 6)]
    assert set(ticks["textfont"]["color"]) == {LIGHT["muted"]}
    shapes = still["layout"]["shapes"]
    assert shapes[-1] == rule
    assert [shape["path"] for shape in shapes[:-1]] == upward * ["M1,2H10000M1,6H10000"]
    assert still["layout"]["height"] == 9
    for name, axis in (("xaxis", ACROSS), ("yaxis", UPWARD)):
        assert still["layout"][name] == {
            **{k: axis[k] for k in ("type", "range", "fixedrange") if k in axis},
            "visible": False,
            "showgrid": False,
        }
