"""Specs and tables: what the browser's view fills, filled in Python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import playwright
from hypothesis import given
from hypothesis import strategies as st

from app.charts.spec import at, col, colour, fill, four_digits, packed, unpacked, used

TABLE = {"a": [1, 2, 3], "b": [[10, 20], [30, 40], [50, 60]], "t": ["x", "y", "z"]}
COLOURS = {"wire": "#D86A00"}
SPEC = {"x": [at("a"), 7], "y": at("b", 1), "line": {"color": colour("wire")}, "curve": col("a"), "text": at("t"), "n": None, "f": 1.5}
NODE = shutil.which("node") or Path(playwright.__file__).parent / "driver" / "node"  # a wheel of Playwright brings one
LIVEVIEW = Path(__file__).parents[2] / "app" / "static" / "liveview.js"


def test_placeholders_become_the_values_at_the_position():
    assert fill(SPEC, TABLE, 1, COLOURS) == {
        "x": [2, 7],
        "y": 40,
        "line": {"color": "#D86A00"},
        "curve": [1, 2, 3],
        "text": "y",
        "n": None,
        "f": 1.5,
    }


def test_used_names_every_column_of_a_spec():
    assert used(SPEC) == {"a", "b", "t"}
    assert used([]) == set()


def test_the_browser_fills_a_spec_as_python_does():
    script = f"""
    const source = require("fs").readFileSync({json.dumps(str(LIVEVIEW))}, "utf8");
    const body = source.slice(source.indexOf("const movable"), source.indexOf("// One bus")).replace("export ", "");
    const {{ fill, cell }} = new Function(body + "; return {{ fill, cell }};")();
    const [spec, table, colours] = {json.dumps([SPEC, TABLE, COLOURS])};
    const look = i => ({{ at: name => cell(table[name], i), col: name => table[name] }});
    console.log(JSON.stringify([0, 1, 2].map(i => fill(spec, look(i), colours))));
    """
    done = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [fill(SPEC, TABLE, i, COLOURS) for i in range(3)]


@given(st.lists(st.integers(0, 65_535), max_size=200))
def test_packing_keeps_whole_numbers(values):
    assert unpacked(packed(np.array(values))) == values


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=50))
def test_four_digits_are_within_half_a_unit_of_the_fourth(values):
    assert np.allclose(four_digits(values), values, rtol=5.1e-4)


def test_four_digits_keep_zero():
    assert four_digits([0.0, 0.53687]) == [0.0, 0.5369]
