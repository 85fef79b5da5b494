"""The pictures of one layer as values: matrices to scale, what crosses, the roofline and the tables under it."""

import pytest

from app.catalog import VIEWS
from app.charts import layer_picture, layer_tables, matrices, roofline
from app.charts.layer_picture import GEOMETRY
from app.charts.scale import text_width
from app.charts.spec import fill, used
from app.over import evaluate_over, token_positions
from app.palette import DARK, LIGHT
from app.reading import read
from app.seen import Seen
from app.state import State
from app.views.frame import context_table
from app.views.matrices import tables
from kvmodel import Scenario, evaluate, find_model
from kvmodel.display import bytes_text
from kvmodel.plan import placement_of
from tests.strategies import MODELS

KINDS = [(name, number) for name in MODELS for number, _ in matrices.kinds_of(find_model(name))]
HALF = 0.11
"""Pixels that rounding both ends of a length may move it by."""
LONGEST = 125
"""Characters of an answer."""


def over(**fields):
    scenario = Scenario(**fields)
    return evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))


def main_of(o, layer=0):
    return matrices.group_of(o.plan.model, layer)


def drawn(layout="wide", layer=0, **fields):
    """(figure, table, over) at the scenario."""
    o = over(**fields)
    table = matrices.matrices_table(o, main_of(o, layer))
    figure = matrices.matrices_figure(o, main_of(o, layer))
    return fill(getattr(figure, layout), table, o.at, LIGHT), table, o


def boxes(trace):
    """(left, top, right, bottom) of each outline of a trace."""
    found, points = [], []
    for x, y in zip(trace["x"], trace["y"], strict=True):
        if x is None:
            xs, ys = zip(*points, strict=True)
            found.append((min(xs), min(ys), max(xs), max(ys)))
            points = []
        else:
            points.append((x, y))
    return found


def sizes(trace):
    return [(round(r - x, 1), round(b - y, 1)) for x, y, r, b in boxes(trace)]


def texts(figure):
    return figure["data"][-1]["text"]


def test_matrices_stand_to_one_scale_in_which_28672_columns_fill_a_side():
    figure, _, _ = drawn()
    prefill, wire, breaks, decode, _ = figure["data"]
    pixel = 306 / 28_672
    square, bar = 8192 * pixel, 1024 * pixel
    x, q, *scores, pv, wide = sizes(prefill)
    assert len(scores) == 3
    assert all(size == pytest.approx((square, square), abs=HALF) for size in (x, q, pv, *scores))
    assert wide == pytest.approx((306, square), abs=HALF)
    assert breaks["x"] == []
    assert all(size == pytest.approx((bar, square), abs=HALF) for size in sizes(wire)[:4])
    lengths = [b - a for a, b in zip(decode["x"][::3], decode["x"][1::3], strict=True)]
    assert lengths == pytest.approx([square] * 4 + [306], abs=HALF)
    assert decode["line"]["width"] == 2


def test_k_and_v_stand_on_both_sides_of_the_gap_with_the_only_arrow_between():
    figure, _, _ = drawn()
    wire = boxes(figure["data"][1])
    *bars, arrow = wire
    assert [left < 306 for left, *_ in bars] == [True, True, False, False]
    assert max(right for _, _, right, _ in bars[:2]) < arrow[0] < arrow[2] < min(left for left, *_ in bars[2:])
    assert figure["data"][1]["fillcolor"] == LIGHT["wire"]
    assert figure["data"][0]["fillcolor"] == LIGHT["soft_prefill"]
    assert not any(trace.get("showlegend") for trace in figure["data"])


@pytest.mark.parametrize(("model", "layer", "bars"), [("deepseek-v3", 0, 1), ("deepseek-v3.2", 0, 2), ("qwen3-next-80b-a3b", 1, 1)])
def test_latents_index_keys_and_states_cross_in_place_of_k_and_v(model, layer, bars):
    figure, _, _ = drawn(model=model, layer=layer)
    assert len(boxes(figure["data"][1])) == 2 * bars + 1


@pytest.mark.parametrize(("model", "layer"), [("gemma-3n-e4b", 21), ("nemotron-3-super", 2)])
def test_a_layer_that_keeps_nothing_has_no_arrow(model, layer):
    figure, table, o = drawn(model=model, layer=layer)
    assert figure["data"][1]["x"] == []
    assert "nothing crosses: 0" in table["answer.text"][o.at]


def test_only_the_last_tokens_of_a_window_cross():
    figure, _, _ = drawn(model="gemma-3-27b", layer=1)
    bars = boxes(figure["data"][1])[:2]
    rows = boxes(figure["data"][0])[0]
    assert all(bottom - top == pytest.approx(1024 * 306 / 28_672, abs=HALF) for _, top, _, bottom in bars)
    assert all(bottom == rows[3] for *_, bottom in bars)


def test_long_prompts_are_cut_and_the_picture_says_how_tall_they_are():
    figure, _, _ = drawn(prompt_tokens=131_072)
    prefill, wire, breaks, *_ = figure["data"]
    assert max(height for _, height in sizes(prefill)) == 92
    assert len(boxes(breaks)) == len(boxes(prefill)) - 3 + 1 + len(boxes(wire)) - 1
    assert any(f"true height is {131_072 * 306 / 28_672:,.0f}\u202fpx" in text for text in texts(figure))


def test_a_decode_row_is_drawn_thicker_than_it_is_and_says_so():
    figure, _, _ = drawn()
    assert any("a decode row is drawn 2\u202fpx, its true height is 0.011\u202fpx" in text for text in texts(figure))


@pytest.mark.parametrize(("model", "layer"), KINDS)
@pytest.mark.parametrize("layout", ["wide", "narrow"])
def test_every_kind_of_layer_fits_its_side_at_every_length(model, layer, layout):
    o = over(model=model)
    index = main_of(o, layer)
    g = GEOMETRY["w" if layout == "wide" else "n"]
    table = matrices.matrices_table(o, index)
    spec = getattr(matrices.matrices_figure(o, index), layout)
    counts = set()
    for i in (0, o.at, len(o.values) - 1):
        figure = fill(spec, table, i, DARK)
        prefill, wire, _, decode, words = figure["data"]
        counts.add(len(words["text"]))
        assert len(words["textposition"]) == len(words["x"]) == len(words["text"])
        assert all(right <= g.column + 0.5 and bottom <= g.height for _, _, right, bottom in boxes(prefill))
        sent = min((left for left, *_ in boxes(wire)), default=g.column)
        assert all(right < sent for _, top, right, _ in boxes(prefill) if top < g.panel(0) + 1)
        assert max((x for x in decode["x"] if x is not None), default=0) <= g.width + 0.5
        assert max(y for y in words["y"]) < g.height - 4
    assert len(counts) == 1


@pytest.mark.parametrize(("model", "layer"), KINDS)
def test_the_answer_names_what_crosses_and_adds_up_to_the_prompt(model, layer):
    o = over(model=model)
    table = matrices.matrices_table(o, main_of(o, layer))
    assert all(len(text) <= LONGEST for text in table["answer.text"])
    assert f"{bytes_text(evaluate(Scenario(model=model)).kv.prompt_bytes)} for all" in table["answer.text"][o.at].replace("of ", "")


def test_the_answer_of_a_plain_model_is_the_sentence_of_the_page():
    _, table, o = drawn()
    said = "Of everything one layer computes, only K and V cross: 33.6\u202fMB a layer, 2.68\u202fGB for all 80."
    assert table["answer.text"][o.at] == said
    assert ["2.68\u202fGB", "", "kv.prompt_bytes"] in table["answer"][o.at]
    assert table["m.setup"][o.at].endswith("The weights (856 M parameters, 1.71\u202fGB) sit on both sides and never move")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": "deepseek-v3"}, "only the latent row crosses: 9.44\u202fMB a layer"),
        ({"model": "deepseek-v3.2"}, "only the latent row and the index keys cross: 10.5\u202fMB a layer"),
        ({"model": "qwen3-next-80b-a3b"}, "in such a layer, 241\u202fMB for all 48, states included."),
        ({"wire_dtype": "int8"}, "only K and V cross: 16.8\u202fMB a layer, 1.34\u202fGB for all 80."),
        ({"decode_held_tokens": 4096}, "only K and V cross: 16.8\u202fMB a layer"),
        ({"decode_held_tokens": 8192}, "Decode already holds this prompt: 0"),
    ],
)
def test_exceptions_to_k_and_v_are_said(fields, said):
    _, table, o = drawn(**fields)
    assert said in table["answer.text"][o.at]


def test_a_layer_number_names_its_kind_and_one_past_the_last_the_main_kind():
    model = find_model("gemma-3-27b")
    full, sliding = (next(i for i, g in enumerate(model.groups) if g.attention.kind == kind) for kind in ("full", "sliding"))
    assert [matrices.group_of(model, n) for n in (0, 1, 5, 6, 62, 63)] == [full, sliding, sliding, full, sliding, full]
    assert matrices.kinds_of(model) == [(1, sliding), (0, full)]


@pytest.mark.parametrize(("model", "layer"), KINDS)
@pytest.mark.parametrize("layout", ["w", "n"])
def test_the_shape_s_name_stands_in_its_matrix_or_clear_of_it(model, layer, layout):
    o, g = over(model=model), GEOMETRY[layout]
    group = o.plan.model.groups[main_of(o, layer)]
    place = placement_of(o.scenario, "prefill")
    for i in range(0, len(o.values), 6):
        shapes_ = matrices.shapes_of(group, place, o.amounts(i), o.values[i], 0)
        if not shapes_.inter:
            continue
        p = layer_picture.picture_of(shapes_, g)
        label = next(item for item in p.labels if item.fill == "ink" and g.panel(2) < item.y < g.panel(2) + g.tall + 11)
        wide, box, height = text_width(label.text, g.size), shapes_.inter * p.scale, p.tallest
        if label.place == "middle center":
            assert label.x - wide / 2 >= 0
            assert label.x + wide / 2 <= box
        else:  # none of its names fits: under a flat matrix, beside a narrow one
            assert label.text == f"{shapes_.inter:,}"
            assert label.x >= box or label.y > g.panel(2) + height + g.size / 2
        row = next(item for item in p.labels if item.fill == "decode_text" and item.y > g.panel(2))
        assert row.x + text_width(row.text, g.size) <= g.width + 0.5


def test_operations_add_up_to_the_layer_that_is_plotted():
    o = over()
    table = layer_tables.operations_table(o, 0)
    phases = roofline.roofline_table(o, 0)
    assert table["Prefill.layer.flop"] == phases["t.0.flop"]
    assert table["Decode.layer.each"] == phases["t.1.each"]
    assert table["Decode.model.weights"][o.at] == "139\u202fGB"
    assert table["Decode.model.cache"][o.at] == "2.68\u202fGB"
    assert "[8,192 × 8,192] [8,192 × 28,672]" in shapes(o, 0, "Prefill")
    assert "[1 × 128] [128 × 8,192], 64 side by side" in shapes(o, 0, "Decode")
    assert table["x.K"][o.at] == "16,777,216\u202fB"


def test_experts_are_named_with_those_a_token_visits():
    o = over(model="deepseek-v3")
    assert "[1 × 7,168] [7,168 × 2,048], 8 side by side of 256 experts" in shapes(o, 1, "Decode")


def shapes(o, index, phase):
    """Second cells of a table of operations."""
    block = fill(layer_tables.operations_block(o, index, phase), layer_tables.operations_table(o, index), o.at, LIGHT)
    rows = block["children"][0]["children"][1]["children"]
    return ["".join(cell["children"]) for cell in (row["children"][1]["children"][0] for row in rows) if cell]


@pytest.mark.parametrize(("model", "layer"), [("llama-3-70b", 0), ("deepseek-v3.2", 0), ("nemotron-3-super", 1), ("gemma-3n-e4b", 25)])
@pytest.mark.parametrize("slider", ["prompt_tokens", "batch"])
def test_every_view_can_move_by_both_sliders(model, layer, slider):
    state = State(Scenario(model=model), seen=Seen(layer=layer))
    board = VIEWS["matrices"].at(state)
    values = (state.value(slider), 256)
    table = tables(state, slider, values) | context_table(state, slider, values)
    for name, view in board.views.items():
        assert used(view["items"]) <= table.keys() | view["now"].keys(), name
        assert view["now"].keys() <= table.keys()
        moved = {key: column[0] for key, column in table.items() if key in view["now"]}
        assert moved == view["now"]


def test_a_layer_chosen_on_the_page_is_read_with_the_rest():
    session = {"view": "matrices", "layer": 6, "overlap": "serial", "overlap_engine": "ideal"}
    assert read(State(Scenario(model="gemma-3-27b")), session, ("prompt_tokens",)).query() == "model=gemma-3-27b&layer=6"


def test_chunks_are_triangles_and_windows_a_band():
    triangle = layer_picture._causal(0, 0, 90, 0, False)
    chunks = layer_picture._causal(0, 0, 90, 30, True)
    band = layer_picture._causal(0, 0, 90, 30, False)
    assert [len(found) for found in (triangle, chunks, band)] == [1, 3, 1]
    assert area(triangle[0]) == pytest.approx(90 * 90 / 2)
    assert sum(area(part) for part in chunks) == pytest.approx(3 * 30 * 30 / 2)
    assert area(band[0]) == pytest.approx(30 * 90 - 30 * 30 / 2)


def area(points):
    pairs = zip(points, [*points[1:], points[0]], strict=True)
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)) / 2


def test_values_are_weighted_by_the_scores_of_all_keys() -> None:
    """P V: a row of keys times keys by the value's dimensions, not the shape of Q K."""
    over = evaluate_over(Scenario(), "prompt_tokens", (8192,))
    said = str(layer_tables.operations_block(over, 0, "Prefill"))
    i = said.index("attention values")
    assert "' × ', {'$at': 'Prefill.4.keys'}, '] [', {'$at': 'Prefill.4.keys'}, ' × 128], 64 side by side'" in said[i : i + 400]
