r"""What a pass needs beside weights and cache, and the largest batch that leaves room for it.

.. math:: workspace = \max(b_t\, T,\; b_r\, R)

with T tokens and R requests of one pass: `b_t` is what the widest layer keeps of a token, `b_r` what the LM head
and the sampler keep of a request. The two are not needed at the same time. An engine finds the same peak by
running one pass with as many tokens as it admits (vLLM `profile_run`).
"""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.flop import absorbs
from kvmodel.numeric import Num, ceil_div, maximum, minimum
from kvmodel.placement import Placement
from kvmodel.records.model import (
    Attention,
    Chunked,
    Compressed,
    Dense,
    Full,
    LayerGroup,
    Linear,
    Mla,
    Moe,
    Shared,
    Sliding,
)

USABLE_MEMORY = 0.9
"""Share of the memory that programs see for weights, cache and workspace; the rest is for the runtime, NCCL and CUDA graphs.

vLLM's `gpu_memory_utilization`, whose default was 0.90 for years and is 0.92 at vllm/config/cache.py, commit 002f10e."""

PASS_TOKENS = 8192
"""Tokens of one pass where neither engine nor scenario states a chunk.

Default of TensorRT-LLM's `max_num_tokens`, and of vLLM's server and SGLang's `chunked_prefill_size` on 80 GB accelerators."""

ACTIVATION_BYTES = 2.0
"""BF16; a second copy in FP8, where the matmul wants one, is not counted."""

LOGIT_BYTES = 14.0
"""A logit in BF16 and FP32, its probability and the sampler's noise in FP32 (vLLM vllm/v1/sample/ops/topk_topp_sampler.py,
commit 01fa3fe, `forward_native`). Samplers that sort held some 41 (https://github.com/vllm-project/vllm/pull/10511)."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Bytes one rank needs for a pass beside weights and cache."""

    token: float
    """For each token of the pass."""
    request: float
    """For each request that ends in it."""

    def bytes(self, tokens: Num, requests: Num) -> Num:
        """Peak of a pass."""
        return maximum(self.token * tokens, self.request * requests)


def workspace(place: Placement, *, absorbed: bool = False) -> Workspace:
    r"""The workspace of one rank; `absorbed` is how decode runs MLA.

    .. math:: b_t = 2\,(2 h + h / DP + \max_{layers} \max(attention, FFN)), \qquad b_r = 14\, V / DP

    the residual stream, the block's input and its output of `h` each, and the widest block. Under attention DP a
    rank keeps the residual of its own requests and gathers the others' tokens for the FFN.

    >>> from kvmodel.registry import accelerators, find_model
    >>> place = Placement(find_model("llama-3-70b"), accelerators()["h100-sxm"], 8, 1, 1, "bf16", "auto")
    >>> workspace(place).token / 2  # 3 x 8,192 + 3 x 28,672 / 8
    35328.0
    """
    hidden, dp = place.model.hidden, place.attention_dp
    widest = max(max(attention_width(place, group, absorbed=absorbed), ffn_width(place, group)) for group in place.model.groups)
    return Workspace(ACTIVATION_BYTES * (2 * hidden + hidden / dp + widest), LOGIT_BYTES * place.model.vocab / dp)


def attention_width(place: Placement, group: LayerGroup, *, absorbed: bool = False) -> float:
    """Elements of a token that one rank keeps inside an attention or state block."""
    absorbed = absorbed or absorbs(group, "prefill")
    mixers = [group.attention, *([group.state] if group.state else [])]
    return sum(_mixer_width(mixer, absorbed) for mixer in mixers) / (place.attention_tp * place.attention_dp)


def _mixer_width(mixer: Attention, absorbed: bool) -> float:
    """Queries, keys, values and outputs of all heads, for one token."""
    if isinstance(mixer, Mla):
        head, row = mixer.nope + mixer.rope, mixer.latent + mixer.rope
        inside = head + row + mixer.latent + mixer.v_dim if absorbed else 2 * head + 2 * mixer.v_dim
        return mixer.q_heads * inside
    if isinstance(mixer, Compressed):
        return 2 * mixer.q_heads * mixer.row
    if isinstance(mixer, Linear):
        return 4 * mixer.heads * mixer.head_dim
    if isinstance(mixer, Full | Sliding | Chunked | Shared):
        gate = mixer.q_heads * mixer.k_dim if mixer.output_gate else 0
        return mixer.q_heads * (mixer.k_dim + mixer.v_dim) + gate + mixer.kv_heads * (mixer.k_dim + mixer.v_dim)
    return 0


def ffn_width(place: Placement, group: LayerGroup) -> float:
    """Elements of a token that one rank keeps inside a feed-forward block: in and out of the activation.

    Routed experts keep a row for each expert a token visits, and that buffer holds what goes in or what comes out,
    whichever is wider (vLLM fused_moe `intermediate_cache13`). Routing is taken for balanced.
    """
    ffn = group.ffn
    if isinstance(ffn, Dense):
        return (3 if ffn.gated else 2) * ffn.inter / place.tp
    if not isinstance(ffn, Moe):
        return 0.0
    matrices = 2 if ffn.gated else 1
    inter = ffn.inter * place.ep / place.expert_shards
    routed = ffn.top_k / place.ep * (max(matrices * inter, ffn.latent or place.model.hidden) + inter)
    return routed + (matrices + 1) * ffn.shared_inter / place.tp


def most(room: Num, slope: Num, each: Num, replicas: int) -> Num:
    """Largest whole B with slope x B + each x ceil(B / replicas) within `room`; 0 where none is.

    >>> most(100.0, 1.0, 10.0, 4)  # seven full rounds of 14, and the 2 left are too few for another
    28.0
    >>> most(113.0, 1.0, 10.0, 4)
    32.0
    """
    full = maximum(room, 0.0) // maximum(slope * replicas + each, 1e-6)
    if replicas == 1:
        return full
    left = room - full * (slope * replicas + each) - each
    return full * replicas + maximum(minimum(left // maximum(slope, 1e-6), replicas - 1), 0.0)


def pass_tokens(new: Num, batch: Num, limit: Num) -> Num:
    """Tokens of the fullest pass over `new` tokens of each of `batch` requests: no more than `limit`, but one a request."""
    return minimum(new * batch, maximum(limit, batch))


def most_prompts(w: Workspace, room: Num, each: Num, new: Num, limit: Num, replicas: int) -> Num:
    """Most requests that fit in `room` while their prompts of `new` tokens are computed, each with a cache of `each` bytes."""
    by_prompt = most(room, w.token * new, each, replicas)
    by_pass = minimum(most(room - w.token * limit, 0.0, each, replicas), most(room, w.token, each, replicas))
    return minimum(maximum(by_prompt, by_pass), most(room, w.request, each, replicas))


def most_decoded(w: Workspace, room: Num, each: Num, replicas: int) -> Num:
    """Most requests that fit in `room` while each makes one token a step."""
    return most(room, max(w.token, w.request), each, replicas)


def on_one(requests: Num, replicas: int) -> Num:
    """Requests on the fullest of the attention replicas."""
    return ceil_div(requests, replicas)
