"""Links against batch: every cell is the model's own time, the stairs part what outlasts a decode step."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.charts import interconnects
from app.charts.full_rate import as_reached
from app.charts.spec import fill
from app.palette import DARK, LIGHT
from kvmodel import Scenario, evaluate, registry
from kvmodel.display import digits, time_text
from kvmodel.plan import plan_of

SCENARIOS = st.builds(
    Scenario,
    model=st.sampled_from(["llama-3-70b", "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b"]),
    link=st.sampled_from(["ib-ndr-400", "ethernet-100", "wan-100", "nvlink-4", "roce-800"]),
    prompt_tokens=st.sampled_from([128, 1024, 8192, 131_072]),
    engine=st.sampled_from(["ideal", "vllm-nixl", "sglang-mooncake"]),
    lanes=st.sampled_from(["auto", 1, 4]),
)


def drawn(scenario, prefix="w"):
    table = interconnects.interconnects_table(scenario, "prompt_tokens", [scenario.prompt_tokens])
    figure = interconnects.interconnects_figure(scenario)
    return table, fill(figure.wide if prefix == "w" else figure.narrow, table, 0, LIGHT)


def lines_of(words, i):
    """(middle, text) of each line of a text that says something, in pixels from the top; Plotly's lines are 1.3 letters apart."""
    size, y, place = words["textfont"]["size"][i], words["y"][i], words["textposition"][i]
    lines = words["text"][i].split("<br>")
    first = y + size / 2 if place == "bottom center" else y - size / 2 - 1.3 * size * (len(lines) - 1)
    assert place in ("bottom center", "top center")
    return [(first + 1.3 * size * k, text) for k, text in enumerate(lines) if text.strip()]


def boxes_of(path):
    """(left, top, right, bottom) of the boxes of a path."""
    found = re.findall(r"M([\d.]+),([\d.]+)H([\d.]+)V([\d.]+)H[\d.]+Z", path)
    return [tuple(map(float, box)) for box in found]


def test_the_published_cells_are_bytes_over_bandwidth():
    """1,024 tokens × 327,680 B: 6.71 ms over 50 GB/s, 215 ms at batch 32; NVLink 4 carries one in 0.746 ms."""
    table, figure = drawn(Scenario(prompt_tokens=1024, batch=32))
    rows = [link.id for link in interconnects.drawn_links(Scenario())]
    cells = dict(zip(((r, b) for r in rows for b in interconnects.COLUMNS["w"]), table["i.text"][0], strict=True))
    assert cells["ib-ndr-400", 1] == "6.71\u202fms"
    assert cells["ib-ndr-400", 32] == "215\u202fms"
    assert cells["nvlink-4", 1] == "0.746\u202fms"
    assert "prefill hides 32 × 1,024 tokens on RoCE 100 or faster; whole, NDR 400 takes 215\u202fms" in table["answer.text"][0]
    assert "<b>InfiniBand NDR 400</b>\u2002" in figure["data"][1]["text"][-1].split("<br><br>")


@settings(max_examples=6, deadline=None)
@given(SCENARIOS, st.sampled_from(["w", "n"]))
def test_cells_are_what_evaluate_says_and_the_stairs_part_them_at_one_step(scenario, prefix):
    table, figure = drawn(scenario, prefix)
    links, columns = interconnects.drawn_links(scenario), interconnects.COLUMNS[prefix]
    assert scenario.link in [link.id for link in links]
    assert [link.bandwidth for link in links] == sorted((link.bandwidth for link in links), reverse=True)
    corners = [tuple(map(float, p.split(","))) for p in figure["layout"]["shapes"][-1]["path"][1:].split("L")]
    heats = {shape["fillcolor"]: boxes_of(shape["path"]) for shape in figure["layout"]["shapes"][: len(interconnects.HEAT)]}
    told, words = figure["data"]
    height = interconnects.row_height(prefix)
    for row, link in enumerate(links):
        passed = corners[2 * row][0]
        for column, batch in enumerate(columns):
            other = scenario if link.id == scenario.link else scenario.with_changes(link=link.id)
            r = evaluate(other.with_changes(batch=batch))
            item = row * len(interconnects.COLUMNS["w"]) + interconnects.COLUMNS["w"].index(batch)
            steps = r.transfer.seconds / r.decode.step_seconds
            assert table["i.text"][0][item] == time_text(r.transfer.seconds)
            assert (column >= passed) == (steps >= 1)
            level = sum(steps >= edge for edge in interconnects.STEPS)
            middle = (column + 0.5, interconnects.HEAD + height * (row + 0.5))
            inside = [tone for tone, boxes in heats.items() if any(a < middle[0] < b and t < middle[1] < u for a, t, b, u in boxes)]
            assert inside == [LIGHT[f"heat{level}"]]
            ahead = other if plan_of(other).overlap != "serial" else other.with_changes(overlap="layer")
            reached = as_reached(ahead)
            hidden = evaluate(reached.with_changes(batch=batch)).bound == "hidden"
            said = [
                (text, words["textfont"]["color"][i])
                for i in (2 * column, 2 * column + 1)
                for y, text in lines_of(words, i)
                if abs(y - middle[1]) < 2
            ]
            shown = ("✓\u2009" if hidden else "") + time_text(r.transfer.seconds)
            assert said == [(shown, LIGHT[f"heat{1 if level < 3 else 4}_text"])]
            most = " at what engines reach" if reached != ahead else ""
            hides = "prefill hides it" if hidden else f"prefill cannot hide it{most}"
            told_here = f"{time_text(r.transfer.seconds)}<br>{digits(steps)} decode steps<br>{hides}"
            assert told["customdata"][row * len(columns) + column] == told_here
            assert (told["x"][row * len(columns) + column], told["y"][row * len(columns) + column]) == middle


@settings(max_examples=15, deadline=None)
@given(SCENARIOS)
def test_the_sentence_counts_the_prompts_that_fit_one_decode_step(scenario):
    supposed, table = "If this could run: ", interconnects.interconnects_table(scenario, "batch", [3])
    answer = table["answer.text"][0]
    assert answer.startswith(supposed) != evaluate(scenario.with_changes(batch=3)).feasible
    text = answer.removeprefix(supposed)

    def steps(batch):
        r = evaluate(scenario.with_changes(batch=batch))
        return r.transfer.seconds / r.decode.step_seconds

    short = registry.links()[scenario.link].short
    taken = f"; whole, {short} takes {time_text(evaluate(scenario.with_changes(batch=3)).transfer.seconds)}"
    assert taken in text or len(text) + len(taken) > 125
    text = table["i.carries"][0]
    none, some = (f"In one decode step {short} {does} " for does in ("cannot carry one prompt", "carries"))
    most = 0 if text.startswith(none) else int(text.removeprefix(some).split()[0])
    assert most == 0 or steps(most) <= 1
    assert steps(most + 1) > 1 or "or more" in text
    assert len(answer.removeprefix(supposed)) <= 125


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({}, "Sent layer by layer, prefill hides 32,768 tokens on RoCE 100 or faster; whole, NDR 400 takes 215~ms, 21.0 decode steps."),
        ({"engine": "sglang-mooncake"}, "Chunk by chunk, prefill hides all but the last chunk of 32,768 tokens on RoCE 100 or faster"),
        ({"engine": "vllm-nixl", "link": "ethernet-25"}, "Sent layer by layer, prefill hides 32,768 tokens on RoCE 100 or faster; whole"),
    ],
)  # fmt: skip
def test_the_answer_leads_with_the_nics_that_hide_the_prompt(fields, answer):
    scenario = Scenario(prompt_tokens=32_768, **fields)
    text = interconnects.interconnects_table(scenario, "prompt_tokens", [32_768])["answer.text"][0]
    assert text.startswith(answer.replace("~", "\u202f"))
    for link in ("roce-100", "ethernet-100"):
        ahead = scenario.with_changes(link=link) if "sglang" in scenario.engine else scenario.with_changes(link=link, overlap="layer")
        assert (evaluate(ahead).bound == "hidden") == (link == "roce-100" or scenario.engine == "ideal")


def test_the_heat_grows_with_its_level_and_its_words_can_be_read():
    """Contrast of a cell's words 4.5 at least; lightness moves one way over the ramp (WCAG 2.2, 1.4.3)."""

    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for theme in (LIGHT, DARK):
        ramp = [luminance(theme[name]) for name in interconnects.HEAT]
        assert ramp in (sorted(ramp), sorted(ramp, reverse=True))
        for fill_colour, ink in zip(interconnects.HEAT, interconnects.HEAT_TEXT, strict=True):
            light, dark = sorted((luminance(theme[fill_colour]), luminance(theme[ink])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("name", ["prompt_tokens", "batch"])
def test_a_faster_link_that_takes_longer_is_named_with_the_reason(name):
    """Under vLLM NIXL a copy a block is launched on NVLink 5: 3.2 µs each against what a NIC posts in its queue."""
    from app.state import State
    from app.views.interconnects import tables

    def said(engine):
        scenario = Scenario(engine=engine, link="nvlink-5")
        return tables(State(scenario), name, (getattr(scenario, name),))["i.odd"][0]

    times = [evaluate(Scenario(engine="vllm-nixl", link=link)).transfer.seconds for link in ("nvlink-5", "ib-xdr-800")]
    assert times[0] > times[1]
    assert said("vllm-nixl").startswith("NVLink 5 has more bandwidth than ")
    assert f"{time_text(times[0])} against" in said("vllm-nixl")
    assert "posting its messages takes" in said("vllm-nixl")
    assert said("ideal") == ""
    links = {link.name: link.bandwidth for link in interconnects.drawn_links(Scenario(link="nvlink-5"))}
    longer = {link.name: evaluate(Scenario(engine="vllm-nixl", link=link.id)).transfer.seconds for link in registry.links().values()}
    odd = [a for a in links if a != "NVLink 5" and any(links[b] < links[a] and longer[b] * 1.02 < longer[a] for b in links)]
    assert said("vllm-nixl").endswith(f" {', '.join(odd[:-1])} and {odd[-1]} take longer than some slower link, too.")


def test_nothing_to_move_is_said():
    text = interconnects.interconnects_table(Scenario(decode_held_tokens=8192), "prompt_tokens", [8192])["answer.text"][0]
    assert text == "Decode already holds this prompt: 0\u202fB to move."


@pytest.mark.parametrize("batch", [1, 256])
def test_the_batch_slider_moves_the_sentence_alone(batch):
    from app.state import State
    from app.views.interconnects import tables

    table = tables(State(Scenario()), "batch", (1, batch))
    assert table["i.text"][0] == table["i.text"][1]
    assert f"prefill hides {'256 × ' if batch > 1 else ''}8,192 tokens on " in table["answer.text"][1]


def test_a_prompt_that_is_one_chunk_has_nothing_to_hide_behind():
    """SGLang's chunks are of 8,192 tokens: 8,192 cross when all is computed, twice as many hide all but the last."""
    table = interconnects.interconnects_table(Scenario(engine="sglang-mooncake"), "prompt_tokens", [8192, 16_384])
    alone, two = table["answer.text"]
    taken = time_text(evaluate(Scenario(engine="sglang-mooncake")).transfer.seconds)
    assert alone.startswith(f"8,192 tokens are one chunk, sent when all is computed: NDR 400 takes {taken}, ")
    assert two.startswith("Chunk by chunk, prefill hides all but the last chunk of 16,384 tokens on ")


def test_the_mark_s_key_says_how_it_is_sent_and_what_is_not_hidden():
    said = {"ideal": "layer by layer, but for the last layer", "sglang-mooncake": "chunk by chunk, but for the last chunk"}
    for engine, how in said.items():
        assert interconnects.hidden_text(Scenario(engine=engine)) == f"prefill hides it, sent {how}"
    assert interconnects.hidden_text(Scenario(overlap="layer-both")) == "prefill hides it, sent layer by layer"
