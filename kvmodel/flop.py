"""FLOP of one layer in prefill, counted from its dimensions."""

from __future__ import annotations

from kvmodel.pairs import shape_of
from kvmodel.parameters import layer_parameters
from kvmodel.records.model import Chunked, Compressed, Full, LayerGroup, Linear, Mla, Shared, Sliding
from kvmodel.work import Work


def layer_flop(group: LayerGroup, hidden: int) -> Work:
    """FLOP of one layer in prefill, over all ranks (multiply and add are two)."""
    active = layer_parameters(group, hidden).active
    pair = pair_flop(group, absorbed=absorbs(group, "prefill"))
    index = index_flop(group)
    capped = shape_of(group).cap_tokens > 0
    token = 2.0 * active + _state_flop(group) + _window_flop(group)
    return Work(token=token, pair=index + (0.0 if capped else pair), capped=pair if capped else 0.0)


def _state_flop(group: LayerGroup) -> float:
    states = [a for a in (group.attention, group.state) if isinstance(a, Linear)]
    return sum(6.0 * a.heads * a.head_dim * a.state_dim for a in states)


def index_flop(group: LayerGroup) -> float:
    """FLOP an indexer spends on one (query, token) pair; merged rows are scored once for `ratio` tokens."""
    ratio = group.attention.ratio if isinstance(group.attention, Compressed) else 1
    return 2.0 * group.indexer.heads * group.indexer.dim / ratio if group.indexer else 0.0


def _window_flop(group: LayerGroup) -> float:
    """FLOP a token spends on the window that a compressed cache keeps beside its merged rows."""
    a = group.attention
    return 4.0 * a.q_heads * a.row * a.window if isinstance(a, Compressed) else 0.0


def absorbs(group: LayerGroup, phase: str) -> bool:
    """Whether queries are taken into the latent, in place of the latent expanded into K and V: in decode, and where an indexer picks rows.

    Each query then reads rows of its own, which no expansion serves: DeepSeek's sparse attention runs so in prefill too
    (https://github.com/deepseek-ai/FlashMLA/issues/125; vLLM all prompts, https://github.com/vllm-project/vllm/pull/39629,
    SGLang those beyond the top-k, https://github.com/sgl-project/sglang/pull/11892).
    """
    return isinstance(group.attention, Mla) and (phase == "decode" or group.indexer is not None)


def pair_flop(group: LayerGroup, *, absorbed: bool) -> float:
    """FLOP of one (query, key) pair, all heads; a latent attends with its rows as they are where it is `absorbed`."""
    a = group.attention
    if isinstance(a, Mla):
        return 2.0 * a.q_heads * (2 * a.latent + a.rope if absorbed else a.nope + a.rope + a.v_dim)
    if isinstance(a, Full | Sliding | Chunked | Shared):
        return 2.0 * a.q_heads * (a.k_dim + a.v_dim)
    if isinstance(a, Compressed):
        return 4.0 * a.q_heads * a.row / a.ratio if a.ratio else 0.0
    return 0.0
