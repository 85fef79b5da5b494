"""Random scenarios: every field of `Scenario` that a test leaves open, within its own bounds."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import assume
from hypothesis import strategies as st

from kvmodel import BadScenarioError, Scenario
from kvmodel.dtypes import WireDtype
from kvmodel.parameters import model_parameters
from kvmodel.plan import plan_of
from kvmodel.records.engine import Overlap
from kvmodel.registry import accelerators, engines, links, models
from kvmodel.scenario import allowed_values, bounds

MODELS = (
    "llama-3-70b",
    "llama-2-7b",
    "deepseek-v3",
    "deepseek-v3.2",
    "deepseek-v4-flash",
    "gpt-oss-120b",
    "gemma-3-27b",
    "gemma-3n-e4b",
    "llama-4-scout",
    "llama-4-maverick",
    "qwen3-next-80b-a3b",
    "nemotron-3-super",
    "jamba-1.5-mini",
    "mixtral-8x7b",
)
"""One model of every attention kind and mixture of kinds."""

_LONG = sorted(models(), key=lambda name: (-len(models()[name].name), name))[:12]
_HEAVY = sorted(models(), key=lambda name: model_parameters(models()[name]).total)[-12:]
WORDIEST = sorted({*_LONG, *_HEAVY})
"""Models of the longest names, and those of the most weights: of whom sentences are longest."""
WORDIEST_ACCELERATORS = sorted(accelerators(), key=lambda name: len(accelerators()[name].name))[-5:]

OVERLAPS = get_args(Overlap)


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    """Whole numbers of every magnitude, small ones as often as large ones."""
    return st.integers(0, max(1, (high - low).bit_length())).flatmap(lambda bits: st.integers(low, min(high, low + 2**bits - 1)))


def field(name: str) -> st.SearchStrategy[Any]:
    """Values inside the bounds that `Scenario` states for a numeric field."""
    low, high = bounds(Scenario, name)
    if "a whole number" not in allowed_values(Scenario, name):
        return st.floats(1e-3, min(30.0, high or 30.0))
    return whole(int(low or 0), int(high or 1))


def _fields(longest: int) -> dict[str, st.SearchStrategy[Any]]:
    return {
        "model": st.sampled_from(MODELS),
        "prompt_tokens": whole(1, longest),
        "output_tokens": field("output_tokens"),
        "batch": st.one_of(st.just(1), whole(1, 64)),
        "prefill_held_tokens": st.one_of(st.just(0), whole(0, longest)),
        "decode_held_tokens": st.one_of(st.just(0), whole(0, longest)),
        "kv_dtype": st.sampled_from(("auto", "bf16", "fp8", "int4")),
        "wire_dtype": st.sampled_from(("same", "same", *get_args(WireDtype))),
        "prefill_accelerator": st.sampled_from(sorted(accelerators())),
        "decode_accelerator": st.sampled_from(sorted(accelerators())),
        "prefill_tp": st.sampled_from((1, 2, 3, 8, 16)),
        "decode_tp": st.sampled_from((1, 2, 4, 8, 16)),
        "prefill_pp": st.sampled_from((1, 2)),
        "decode_pp": st.sampled_from((1, 2)),
        "prefill_attention_dp": st.sampled_from((1, 1, 8)),
        "decode_attention_dp": st.sampled_from((1, 1, 8)),
        "link": st.sampled_from(sorted(links())),
        "lanes": st.one_of(st.just("auto"), whole(1, 16)),
        "shared_by": st.one_of(st.just(1), whole(1, 16)),
        "engine": st.sampled_from(sorted(engines())),
        "overlap": st.sampled_from((None, *OVERLAPS)),
        "group_layers": whole(1, 100),
        "block_tokens": st.one_of(st.none(), whole(1, 1024)),
        "chunk_tokens": st.one_of(st.none(), whole(16, longest)),
        "prefill_seconds": st.one_of(st.none(), field("prefill_seconds")),
        "decode_step_seconds": st.one_of(st.none(), st.floats(1e-3, 0.2)),
        "link_gbytes_per_s": st.one_of(st.none(), st.floats(0.1, 900.0)),
        "decode_batch": whole(1, 256),
        **_own_ways(),
    }


AS_THE_ENGINE: dict[str, Any] = {"contact": "warm"} | dict.fromkeys((
    "achieved", "latency_seconds", "message_seconds", "posting_threads", "outstanding_messages", "kv_split", "fragmentation",
    "cross_layer", "gather", "staging_copies", "host_bounce", "max_lanes_per_gpu", "mla_copies", "handoff_seconds", "admission_seconds",
    "handshake_seconds", "posts_while_sending", "skips_held", "early_prefix", "unequal_tp", "first_token", "released_by",
    "nics_per_gpu", "direction", "serial_below_tokens", "nominal_link", "keeps_all_chunked", "gathers_copied_heads", "nvfp4_equal_tp",
    "same_node_only",
))  # fmt: skip
"""Fields that leave engine and link as they are."""


def _own_ways() -> dict[str, st.SearchStrategy[Any]]:
    """Values in place of the engine's and the link's; mostly none, so that both kinds are met together."""
    ways: dict[str, st.SearchStrategy[Any]] = {
        "achieved": st.floats(0.05, 1.0),
        "latency_seconds": st.floats(0.0, 0.01),
        "message_seconds": st.floats(0.0, 1e-4),
        "posting_threads": whole(1, 64),
        "outstanding_messages": whole(1, 4096),
        "kv_split": st.integers(1, 2),
        "fragmentation": st.floats(0.0, 1.0),
        "cross_layer": st.sampled_from(("no", "yes")),
        "gather": st.sampled_from(("no", "yes")),
        "staging_copies": st.integers(0, 4),
        "host_bounce": st.sampled_from(("no", "yes")),
        "nics_per_gpu": st.sampled_from((0.5, 1.0, 2.0, 4.0)),
        "max_lanes_per_gpu": whole(1, 8),
        "mla_copies": st.sampled_from(("per-rank", "single", "split")),
        "handoff_seconds": st.floats(0.0, 0.1),
        "admission_seconds": st.floats(0.0, 0.1),
        "handshake_seconds": st.floats(0.0, 10.0),
        "posts_while_sending": st.sampled_from(("no", "yes")),
        "skips_held": st.sampled_from(("no", "yes")),
        "early_prefix": st.sampled_from(("no", "yes")),
        "unequal_tp": st.sampled_from(("blocks", "tokens", "refused")),
        "first_token": st.sampled_from(("prefill", "decode")),
        "released_by": st.sampled_from(("prefill", "decode")),
        "direction": st.sampled_from(("push", "pull")),
        "serial_below_tokens": whole(0, 4096),
        **dict.fromkeys(
            ("nominal_link", "keeps_all_chunked", "gathers_copied_heads", "nvfp4_equal_tp", "same_node_only"),
            st.sampled_from(("no", "yes")),
        ),
    }
    asked = {name: st.one_of(st.none(), st.none(), way) for name, way in ways.items()}
    return asked | {"contact": st.sampled_from(("warm", "warm", "first"))}


@st.composite
def scenarios(draw: st.DrawFn, longest: int = 50_000, **fixed: Any) -> Scenario:
    """Scenarios that can be evaluated; a field given is a value or a strategy of its own."""
    fields = _fields(longest) | {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in fixed.items()}
    drawn = Scenario(**{name: draw(strategy) for name, strategy in fields.items()})
    try:
        plan_of(drawn)
    except BadScenarioError:  # a wire wider than the cache, or layer-both where prefill makes the first token
        assume(False)
    return drawn
