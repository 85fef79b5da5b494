"""Memory of each side: what an accelerator holds of weights, cache and workspace, and the batch that fits."""

from __future__ import annotations

from functools import reduce

from kvmodel.memory import PASS_TOKENS, most_decoded, most_prompts, on_one, pass_tokens
from kvmodel.numeric import Num, maximum, whole
from kvmodel.plan import Plan, Side
from kvmodel.progress import Amounts, cut
from kvmodel.results import Memory, SideMemory


def capacity(plan: Plan, a: Amounts) -> Memory:
    """Memory of one accelerator on each side, in bytes, with the largest batch that fits."""
    return Memory(prefill_memory(plan, a), decode_memory(plan, a))


def prefill_memory(plan: Plan, a: Amounts) -> SideMemory:
    """What a prefill accelerator holds: weights, the batch's prompts, and the workspace of its fullest pass."""
    side, limit, (new, _, _) = plan.prefill, plan.chunk or PASS_TOKENS, cut(plan, a)
    each = rank_bytes(side, a.prompt_tokens)
    activation = side.workspace.bytes(pass_tokens(new, a.batch, limit), a.batch)
    fitting = most_prompts(side.workspace, side.usable_bytes - side.rank_weights, each, new, limit, side.attention_dp)
    return _memory(side, on_one(a.batch, side.attention_dp) * each, activation, fitting)


def decode_memory(plan: Plan, a: Amounts) -> SideMemory:
    """What a decode accelerator holds: weights, the decoded requests with all their output, and the workspace of a step."""
    side = plan.decode
    requests, each = maximum(a.batch, a.decode_batch), rank_bytes(side, a.prompt_tokens + a.output_tokens)
    fitting = most_decoded(side.workspace, side.usable_bytes - side.rank_weights, each, side.attention_dp)
    return _memory(side, on_one(requests, side.attention_dp) * each, side.workspace.bytes(requests, requests), fitting)


def _memory(side: Side, cache: Num, activation: Num, fitting: Num) -> SideMemory:
    return SideMemory(
        weights_bytes=side.rank_weights,
        cache_bytes=cache,
        activation_bytes=activation,
        usable_bytes=side.usable_bytes,
        fits=side.rank_weights + cache + activation <= side.usable_bytes,
        batch_fits=whole(fitting),
    )


def rank_bytes(side: Side, tokens: Num) -> Num:
    """Cache of one request on one rank of the fullest pipeline stage."""
    return reduce(maximum, [stage.prompt_bytes(tokens) for stage in side.stages])
