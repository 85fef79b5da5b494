"""An agent's next turn: what five ways of serving it move and how long its first token takes.

History tokens 0 to H are known, of which the last g were generated on decode; d tokens are new. Each
design is a choice of who holds which leading tokens: prefill, decode, and a pool reachable by both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field

from kvmodel.designs import Design, Serving
from kvmodel.errors import BadScenarioError
from kvmodel.evaluate import amounts_of
from kvmodel.numeric import Num, maximum, minimum
from kvmodel.plan import Plan, plan_of
from kvmodel.progress import Amounts
from kvmodel.scenario import MAX_PROMPT_TOKENS, Inputs, Scenario, need_scenario


class Turn(Inputs):
    """Inputs of one agent turn, beside those of Scenario."""

    history_tokens: int = Field(30_000, ge=0, le=MAX_PROMPT_TOKENS // 2, title="History tokens")
    """Tokens before this turn, generated ones included."""
    delta_tokens: int = Field(2_000, ge=1, le=MAX_PROMPT_TOKENS // 2, title="New tokens this turn")
    """Tokens the turn adds to the prompt."""
    generated_tokens: int = Field(500, ge=0, le=MAX_PROMPT_TOKENS // 2, title="Generated last turn")
    """Tokens of the history whose KV was born on decode; no more than the history counts."""
    turns: int = Field(1, ge=1, le=200, title="Turns")
    """Turns to add up, the history growing by the new and the generated tokens each time."""
    prefill_held_tokens: int | None = Field(None, ge=0, le=MAX_PROMPT_TOKENS, title="Prefill holds")
    """Leading tokens prefill holds, in place of each design's own assumption."""
    decode_held_tokens: int | None = Field(None, ge=0, le=MAX_PROMPT_TOKENS, title="Decode holds")
    """Leading tokens decode holds, in place of each design's own assumption."""
    pool_held_tokens: int | None = Field(None, ge=0, le=MAX_PROMPT_TOKENS, title="Pool holds")
    """Leading tokens the pool holds, in place of each design's own assumption."""
    local_prefill_tokens: int = Field(2_048, ge=0, le=MAX_PROMPT_TOKENS, title="Local prefill below")
    """Sticky: decode prefills fewer new tokens than this itself, if they are under 70 % of the prompt."""


@dataclass(frozen=True, slots=True)
class Total:
    """One design over all turns."""

    id: str
    warm: bool
    unique_bytes: float
    wire_bytes: float
    flop: float
    ttft_seconds: float
    """Sum of all turns' times to the first token."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """All designs for one turn, and their totals over several."""

    designs: tuple[Design, ...]
    turns: int
    totals: tuple[Total, ...]

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, ready for JSON."""
        return {
            "designs": [design.as_dict() for design in self.designs],
            "turns": self.turns,
            "totals": [asdict(total) for total in self.totals],
        }


def decoded_beside(scenario: Scenario) -> int:
    """Requests decoded beside a turn: those of the decode batch that are not the turn's own.

    >>> decoded_beside(Scenario()), decoded_beside(Scenario(decode_batch=32, batch=2))
    (0, 30)
    """
    return max(scenario.decode_batch - scenario.batch, 0)


def agent_turn(scenario: Scenario, turn: Turn | None = None) -> TurnResult:
    """Serve an agent's next turn by each design.

    The scenario gives model, sides, link and engine; its own prompt and held tokens are not used.

    >>> rows = agent_turn(Scenario(), Turn(history_tokens=30_000, delta_tokens=2_000)).designs
    >>> [(row.id, round(row.unique_bytes / 1e9, 2)) for row in rows]
    [('recompute', 10.49), ('pool', 0.82), ('pool', 10.49), ('sticky', 0.0), ('pull-back', 0.82)]

    Raises UnknownNameError and BadScenarioError.
    """
    need_scenario(scenario)
    asked = Turn() if turn is None else turn
    if not isinstance(asked, Turn):
        raise BadScenarioError(f"turn: got {type(asked).__name__}; allowed: a Turn, as in Turn(history_tokens=30_000)")
    plan, amounts = plan_of(scenario), amounts_of(scenario)
    last = asked.history_tokens + (asked.turns - 1) * (asked.delta_tokens + asked.generated_tokens) + asked.delta_tokens
    if last > MAX_PROMPT_TOKENS:
        raise BadScenarioError(f"turns: got {asked.turns}, which reach {last:,} tokens; allowed: up to {MAX_PROMPT_TOKENS:,}")
    first = designs(plan, amounts, asked)
    rows = [first]
    for number in range(1, asked.turns):
        history = asked.history_tokens + number * (asked.delta_tokens + asked.generated_tokens)
        rows.append(designs(plan, amounts, asked, history=history))
    totals = tuple(_total([row[i] for row in rows]) for i in range(len(first)))
    return TurnResult(first, asked.turns, totals)


def _total(rows: Sequence[Design]) -> Total:
    sums = {name: float(sum(getattr(row, name) for row in rows)) for name in ("unique_bytes", "wire_bytes", "flop", "ttft_seconds")}
    return Total(rows[0].id, rows[0].warm, **sums)


def designs(plan: Plan, amounts: Amounts, turn: Turn, *, history: Num | None = None, delta: Num | None = None) -> tuple[Design, ...]:
    """All designs; `history` and `delta` may be arrays in place of the turn's own."""
    h = turn.history_tokens if history is None else history
    d = turn.delta_tokens if delta is None else delta
    born = maximum(h - turn.generated_tokens, 0)
    served = Serving(plan, amounts, h, d)

    def hold(own: Num, override: int | None) -> Num:
        return own if override is None else minimum(override, h) + 0 * own

    p, q, k = turn.prefill_held_tokens, turn.pool_held_tokens, turn.decode_held_tokens
    zero = 0 * (h + d)
    return (
        served.recompute(hold(zero, p), hold(zero, k)),
        served.pool(hold(born, p), hold(h + zero, k), hold(born, q), warm=True),
        served.pool(zero, zero, hold(h + zero, q), warm=False),
        served.sticky(hold(born, p), hold(h + zero, k), turn.local_prefill_tokens),
        served.pull_back("pull-back", hold(born, p), hold(h + zero, k)),
    )
