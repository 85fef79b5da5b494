"""Explanations as text blocks: of one figure beside its number, and of all figures of a view in a fold below the picture."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import streamlit as st

from app import report
from app.charts.tables import table_block
from app.explained import filled_text, from_text, headline, named, remedies_text, share_of, term_text, value_text
from app.live import block, static_block
from app.state import BESIDE, State, record_of
from kvmodel.explain import FIGURES, SEE, Case, Explanation, Figure, Given, explained, figures_of

SHOWN: dict[str, tuple[str, ...]] = {
    "one-request": (
        "ttft_seconds", "prefill.seconds", "transfer.exposed_seconds", "decode.step_seconds", "kv.wire_bytes", "transfer.seconds",
        "gap_seconds", "second_token_seconds", "tpot_seconds", "request_seconds", "kv.bytes_per_token", "kv.prompt_bytes",
    ),
    "critical-length": (*(figure.id for figure in figures_of("critical")), "transfer.seconds", "prefill.seconds", "decode.step_seconds"),
    "next-turn": tuple(figure.id for figure in figures_of("turn") if not figure.id.endswith("wire_bytes")),
    "wire": ("gap_seconds", "transfer.seconds", "transfer.exposed_seconds", "kv.wire_bytes", "prefill.seconds"),
    "interconnects": ("transfer.seconds", "kv.wire_bytes", "decode.step_seconds"),
    "sensitivity": ("ttft_seconds", "gap_seconds", "prefill.seconds", "transfer.seconds", "decode.step_seconds"),
    "weighs": ("kv.prompt_bytes", "kv.bytes_per_token", "kv.wire_bytes"),
    "matrices": ("kv.prompt_bytes", "kv.bytes_per_token", "prefill.seconds", "decode.step_seconds"),
    "measured": ("transfer.seconds", "kv.wire_bytes"),
}  # fmt: skip
"""Figures of each view with charts, the headline's first."""
COMMANDS = {"request": "evaluate", "critical": "critical", "turn": "turn"}
"""Command that prints the figures of a family."""


FOLD = block(
    "details",
    block("summary", block("span", "Explain these numbers"), block("span", "formulas, sources, what would halve them")),
    class_="kv-row kv-explain-fold",
    data_explain_all="",
)
"""The figures of a view, each with its explanation: asked for when it is unfolded."""


def draw() -> None:
    """The fold with all figures of the view; in a frame of another page nothing."""
    if not st.context.is_embedded:
        static_block("explain_view", FOLD)


def blocks(state: State, view: str, address: str) -> list[dict[str, Any]]:
    """A folded row for each figure of a view, at the state itself."""
    return [row(told(FIGURES[name], case_of(state)), state, view, address) for name in SHOWN[view]]


def case_of(state: State) -> Case:
    """What figures are asked of."""
    return Case(state.scenario, state.turn)


@lru_cache(maxsize=256)
def told(figure: Figure, case: Case) -> Explanation:
    """A figure explained; kept, for it is asked for again from other places."""
    return explained(figure, case)


def row(one: Explanation, state: State, view: str, address: str) -> dict[str, Any]:
    """One figure: its value, and unfolded all that is said of it."""
    head = block("summary", block("span", one.name), block("span", headline(one)))
    inside = parts(one, SHOWN[view], state, view, address)
    return block("details", head, *inside, class_="kv-row", name="explain", data_figure=one.figure)


def parts(one: Explanation, shown: Collection[str], state: State, view: str, address: str) -> list[dict[str, Any]]:
    """The formula, what adds up, what was put in, what would halve it; values that are figures `shown` here open theirs."""
    filled = filled_text(one)
    goal = [block("b", one.goal), ": ", "; ".join(remedies_text(one)), "."]
    return [
        block("p", one.words),
        block("p", one.symbols, class_="kv-formula"),
        *([block("p", filled, class_="kv-formula")] if filled else []),
        *_terms(one),
        _inputs(one, shown),
        block("p", *goal),
        block("p", one.left_out),
        _report(one, state, view, address),
    ]


def _terms(one: Explanation) -> list[dict[str, Any]]:
    """The terms as a table, where there are several."""
    if len(one.terms) < 2:
        return []
    rows = [(p.name, term_text(p.value, one.unit), share_of(p.share), p.how or p.symbol) for p in one.terms]
    return [table_block(f"Terms of {one.name}", ("Term", "Is", "Share", "How"), rows, look="kv-put")]


def _inputs(one: Explanation, shown: Collection[str]) -> dict[str, Any]:
    """Values put in, each with where it comes from."""
    rows = [(named(g), value_text(g.value, g.unit), _from(g, shown)) for g in one.inputs]
    return table_block(f"Values in {one.name}", ("Value", "Is", "From"), rows, look="kv-put")


def _from(given: Given, shown: Collection[str]) -> dict[str, Any] | str:
    """Where a value comes from: a page behind its row, or a figure of its own that opens here."""
    figure = given.row.removeprefix(SEE)
    if figure != given.row and figure in shown:
        return block("button", "its own explanation", type="button", class_="kv-open", data_explain=figure)
    if figure != given.row:
        return "computed, explained on One request" if figure in SHOWN["one-request"] else "computed"
    found = re.search(r"https://[^\s,;()]+", given.source)
    if found is None:
        return block("span", from_text(given), title=given.source) if given.source else from_text(given)
    before, _, after = from_text(given).partition(given.row)
    return block("span", before, block("a", given.row, href=found[0], target="_blank", rel="noopener", title=given.source), after)


def _report(one: Explanation, state: State, view: str, address: str) -> dict[str, Any]:
    """Report a wrong number: to where this installation wants it, or as a text to copy."""
    body = report.body_of(one, command_of(one, state), link_of(state, view, address))
    link = report.link_of(one, body)
    to = [block("a", "Report a wrong number", href=link, target="_blank", rel="noopener")] if link else []
    title = f"Copy a report of {one.name}"
    copy = block("button", "Copy a report", type="button", class_="kv-button", data_copy=body, aria_label=title, title=body)
    return block("div", *(to or [block("span", "A wrong number?")]), copy, class_="kv-share")


def link_of(state: State, view: str, address: str) -> str:
    """The page's link to the scenario; none for a model of the reader's own."""
    if state.is_own() or not address:
        return ""
    base, query = address.partition("?")[0].rstrip("/").removesuffix(f"/{view}"), state.query()
    return f"{base}/{'' if view == 'one-request' else view}{'?' if query else ''}{query}"


def command_of(one: Explanation, state: State) -> str:
    """The command line that explains the figure again."""
    family = FIGURES[one.figure].family
    turn = {name: state.value(name) for name in BESIDE if BESIDE[name][0] == "turn"}
    changed = {name: value for name, value in turn.items() if value != record_of(name).model_fields[name].default}
    own = " (the model is a configuration of my own: config.json attached)" if state.is_own() else ""
    return report.command_of(COMMANDS[family], {**state.scenario.changed(), **(changed if family == "turn" else {})}, one.figure) + own
