"""Method: the formulas, where the numbers come from, and what is left out."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.charts.tables import table_block
from app.live import block, static_block
from app.state import State, from_link
from app.views import formulas
from app.views.arrivals import arrived
from app.words import WORDS
from kvmodel import registry
from kvmodel.display import count_text
from kvmodel.plan import plan_of

WRAP = "white-space:normal"
SECTIONS = (
    (
        "Bytes",
        "A layer keeps, for each token, KV heads × (key + value elements) × bytes an element; under MLA one row of latent and rotary "
        "elements. Sliding windows and local chunks keep their last tokens, linear and state-space layers a fixed state, a sparse "
        "indexer its own keys whatever the KV dtype. FP8 weights do not mean an FP8 cache. One rank holds max(1, KV heads ÷ TP) heads: "
        "beyond their number heads are copied, and the copies cross the wire.",
    ),
    (
        "Wire",
        "A lane is busy for bytes ÷ (achieved bandwidth ÷ handoffs that share it), plus or against the cost of messages, plus staging "
        "copies and compression. Latency comes once, after the last byte. Messages are "
        "counted for each rank: ranks that share a lane post theirs side by side, and a latent is posted by the one rank that sends or "
        "reads it. Attention replicas of the decode side take handoffs side by side, each over its own NICs. "
        "Pipeline stages add no lanes: a layer crosses on the NICs of its own stage. "
        "Vendors quote NVLink for both directions; one direction is used here. The ideal engine uses nominal bandwidth and nothing else.",
    ),
    (
        "Overlap",
        "Part i is ready when prefill has computed it and crosses when the wire is free: busy(i) = max(ready(i), busy(i−1)) + x(i). Parts "
        "are layers, groups of layers, chunks, or layers within chunks; layers that leave together may share messages, and the size of "
        "group is the one that leaves least exposed unless you name another. What is left after prefill ends is exposed. Layer by layer "
        "on both sides decode begins once prefill has ended, and each layer once its cache has arrived.",
    ),
    (
        "Prefill and decode",
        "Each is a sum of physical terms at datasheet peak (kernel launches, attention or cache read, all-reduce, memory traffic, "
        "experts; reading weights overlaps multiplying with them) times at most ten non-negative constants for each accelerator, weight "
        "format and phase, fitted to published operator tables for A100, H100, H200, B200 and GB200; those of one chip are drawn to each "
        "other. Other accelerators borrow the nearest family's constants and get a wider band. At a batch of one the tables have a B200 "
        "take up to 12 % longer for a step than an H200, and so does the model; engines on B200 were seen to do the same.",
    ),
    (
        "The band of a time",
        "Its lower end is the error on rows left out of the fit. Its upper end is that and what engines were measured to take beyond "
        "the tables: in prefill up to 22\u202f% of TTFT at 8k tokens; in a decode step 3.3\u202fµs for each kernel and 5\u202fµs for each "
        "all-reduce and doubling of its ranks, which holds nine in ten of 566 published steps. That counts most where steps are short: "
        "small models, high TP, small batches.",
    ),
    (
        "Ranks that span nodes",
        "NCCL runs an all-reduce between nodes through all NICs of a node at once: on two nodes of eight H100 with 400\u202fGb/s each, "
        "304\u202fGB/s of bus at 100\u202fMiB and 435 at 1\u202fGiB, with some 45\u202fµs of waiting. The operator tables have not "
        "measured that: they stretch what one node takes by fabric ÷ the NICs of one GPU, nine times on an H100, and only their rows "
        "of a model with experts span nodes. So a dense model is timed over all NICs; a model with experts follows the tables. Each "
        "band holds the other way too, and is wide.",
    ),
    (
        "Memory",
        "An accelerator holds its share of the weights, the cache of its requests and the workspace of one pass: BF16 for each token of "
        "the pass, of the residual, a block's ends and the inside of the widest block, or 14 bytes for each logit, whichever is more. A "
        "pass takes a chunk, or 8,192 tokens where none is stated. A side fits within 90 % of what the driver leaves to programs, which "
        "for most accelerators is their GB read as GiB. What does not fit is timed all the same.",
    ),
    (
        "First token",
        "TTFT = prefill + exposed transfer + fixed handoff + admission + one decode step where decode makes the first token. Where prefill "
        "releases it, the gap falls between the first and the second token instead.",
    ),
    (
        "Explain a number",
        "Below each picture, Explain these numbers opens the formula of each figure in words and symbols, the terms that add up to it, "
        "every value put in with its source and the day it was checked, and for each input the least change that would halve the figure, "
        "found by evaluating it; a dotted number opens its own. On the command line --explain FIGURE says the same. A wrong number? Each "
        "explanation has a report to send: the figure to its last digit, the version, the link and the command that give it again.",
    ),
    (
        "Left out",
        "Queueing and routing, the network beyond the link, uneven load of experts, pipeline bubbles between "
        "stages, and stages that send side by side what is sent after prefill. "
        "A calculation, not a measurement: put in what you measured under More inputs.",
    ),
)


def show() -> None:
    """Draw the view, with the formulas of the reader's scenario."""
    arrived(st.session_state, dict(st.query_params))
    state: State = st.session_state.get("state") or from_link(dict(st.query_params))
    with st.container(key="page"):
        static_block("method_view", *blocks(state))


def blocks(state: State) -> list[dict[str, object]]:
    """The whole text, its formulas with their values for a scenario."""
    texts = [block("h1", "How the numbers are made", class_="kv-answer kv-short")]
    for title, text in SECTIONS:
        texts += [block("h2", title, class_="kv-h2"), block("p", text, class_="kv-prose")]
        if title == "Prefill and decode":
            texts += matrices_blocks(state)
    return [*texts, *words_blocks(), *_sources()]


def words_blocks() -> list[dict[str, object]]:
    """The terms of the page, each with what it means."""
    rows = [(word[0].upper() + word[1:], meaning) for word, meaning in sorted(WORDS.items(), key=lambda item: item[0].lower())]
    return [block("h2", "Words", class_="kv-h2"), table_block("Words", ("Term", "Means"), rows, look="kv-sources")]


def matrices_blocks(state: State) -> list[dict[str, object]]:
    """The formulas of matrices and roofline, with their values for a scenario."""
    scenario, plan = state.scenario, plan_of(state.scenario)
    gpus = " and ".join(dict.fromkeys(side.accelerator.name for side in (plan.prefill, plan.decode)))
    whose = f" Values: {plan.model.name}, {count_text(scenario.prompt_tokens)} prompt tokens, {gpus}."
    heading = block("h2", "Matrices and roofline", class_="kv-h2")
    return [heading, block("p", formulas.INTRO + whose, class_="kv-prose"), formulas.formulas_block(scenario)]


def _sources() -> list[dict[str, object]]:
    tables = {
        "Accelerators": registry.accelerators(),
        "Links": registry.links(),
        "Engines": registry.engines(),
        "Models": registry.models(),
        "Time model": {**registry.derates(), **registry.margins()},
    }
    return [block("h2", "Sources", class_="kv-h2"), *(_source_table(title, list(rows.values())) for title, rows in tables.items())]


def _source_table(title: str, rows: list[Any]) -> dict[str, object]:
    """A folded table of rows with where their facts come from."""
    cells = [
        block(
            "tr",
            block("td", getattr(row, "name", row.id)),
            block("td", *_linked(row.source), style=WRAP),
            block("td", row.checked.isoformat()),
        )
        for row in rows
    ]
    head = block("thead", block("tr", *(block("th", text, scope="col") for text in (title, "Source", "Checked"))))
    table = block("table", head, block("tbody", *cells), class_="kv-table kv-sources")
    region = block("div", table, class_="kv-scroll", tabindex="0", role="region", aria_label=title)
    return block("details", block("summary", block("span", title), block("span", f"{len(rows)} rows")), region, class_="kv-row")


def _linked(source: str) -> list[object]:
    """A source's text with its addresses as links."""
    out: list[object] = []
    for word in source.split(" "):
        bare = word.strip("(),;")
        if bare.startswith("https://"):
            before, _, after = word.partition(bare)
            out += [before, block("a", bare.removeprefix("https://"), href=bare, target="_blank", rel="noopener"), after + " "]
        else:
            out.append(word + " ")
    return out
