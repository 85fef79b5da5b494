"""The head of a slider: its label, its value as it moves, and the ticks of its scale."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from app import controls
from app.charts.scale import TOKEN_TICKS
from app.charts.spec import Table, at
from app.live import Board, Picture, block
from app.over import COUNTED
from app.typed import Typed
from kvmodel.display import count_text, tick_text


def head_table(name: str, values: Sequence[int], typed: Typed) -> Table:
    """Texts of a slider's head; where it stands at what was typed with a letter, that beside the number it stands for."""
    return {f"head.{name}": [count_text(v) for v in values], f"typed.{name}": [_typed_text(typed, v) for v in values]}


def _typed_text(typed: Typed, value: int) -> str:
    return f"{typed[0]} = " if typed is not None and typed[1] == value else ""


@lru_cache(maxsize=512)
def slider_head(name: str, values: tuple[int, ...], value: int, table: str, typed: Typed) -> Picture:
    """Label, live value and ticks of a slider."""
    counted = name in COUNTED
    ticks = [v for v in ((1, 8, 64, 256, 1024) if counted else TOKEN_TICKS) if v in values]
    marks = [
        block("span", str(v) if counted else tick_text(v), style=f"left:{100 * values.index(v) / (len(values) - 1):.2f}%") for v in ticks
    ]
    shown = block("span", block("span", at(f"typed.{name}"), class_="kv-typed"), block("b", at(f"head.{name}")), class_="kv-slider-value")
    head = block("div", block("span", controls.label_of(name)), shown, class_="kv-slider-head")
    scale = block("div", *marks, class_="kv-slider-ticks", aria_hidden="true")
    board = Board(name, value, {name: table})
    board.view(head_key(name), [head, scale], {column: cells[0] for column, cells in head_table(name, (value,), typed).items()})
    return board.done()


def head_key(name: str) -> str:
    """Key of a slider's head."""
    return f"head_view_{name}"
