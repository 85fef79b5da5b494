"""Method: the formulas, where the numbers come from, and what is left out."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.live import block, static_block
from kvmodel import registry

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
        "copies and compression. Latency comes once, after the last byte. Vendors quote NVLink for both directions; one direction is "
        "used here. The ideal engine uses nominal bandwidth and nothing else.",
    ),
    (
        "Overlap",
        "Part i is ready when prefill has computed it and crosses when the wire is free: busy(i) = max(ready(i), busy(i−1)) + x(i). Parts "
        "are layers, chunks, or layers within chunks. What is left after prefill ends is exposed.",
    ),
    (
        "Prefill and decode",
        "Each is a sum of physical terms at datasheet peak (kernel launches, attention or cache read, all-reduce, memory traffic, "
        "experts; reading weights overlaps multiplying with them) times at most ten non-negative constants for each accelerator, weight "
        "format and phase, fitted to published operator tables for A100, H100, H200, B200 and GB200. The band is the error on rows left "
        "out of the fit. Other accelerators "
        "borrow the nearest family's constants and get a wider band. The tables themselves read 14 to 22 % below measured TTFT at 8k "
        "tokens, which the band's upper end includes.",
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
        "Queueing and routing, the network beyond the link, the all-to-all of expert parallelism, pipeline bubbles between "
        "stages. A calculation, not a measurement: put in what you measured under More inputs.",
    ),
)


def show() -> None:
    """Draw the view."""
    texts = [block("h1", "How the numbers are made", class_="kv-answer kv-short")]
    for title, text in SECTIONS:
        texts += [block("h2", title, class_="kv-h2"), block("p", text, class_="kv-prose")]
    with st.container(key="page"):
        static_block("method_view", *texts, *_sources())


def _sources() -> list[dict[str, object]]:
    tables = {
        "Accelerators": registry.accelerators(),
        "Links": registry.links(),
        "Engines": registry.engines(),
        "Models": registry.models(),
    }
    return [block("h2", "Sources", class_="kv-h2"), *(_source_table(title, list(rows.values())) for title, rows in tables.items())]


def _source_table(title: str, rows: list[Any]) -> dict[str, object]:
    """A folded table of rows with where their facts come from."""
    cells = [
        block("tr", block("td", row.name), block("td", *_linked(row.source), style=WRAP), block("td", row.checked.isoformat()))
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
