"""Configurations with fields dropped, nulled, of the wrong type, huge or negative.

`HYPOTHESIS_PROFILE=long` runs 20,000 examples, the default a few hundred.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvmodel.cache import model_cache
from kvmodel.config import ParsedConfig, parse_model_config
from kvmodel.errors import BadConfigError
from kvmodel.parallel import check_tp
from kvmodel.parameters import model_parameters

EXAMPLES = {"long": 20_000}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 300)
fuzz = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])

GOLDEN = tomllib.loads((Path(__file__).parent / "golden" / "config_families.toml").read_text())["case"]
SEEDS: list[dict[str, Any]] = [json.loads(case["fields"]) for case in GOLDEN]
EXTRAS = (
    "sliding_window", "use_sliding_window", "max_window_layers", "layer_types", "kv_lora_rank", "q_lora_rank", "num_kv_shared_layers",
    "quantization_config", "torch_dtype", "head_dim", "v_head_dim", "num_key_value_heads", "num_experts", "n_routed_experts",
    "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", "mamba_d_state", "hybrid_override_pattern", "block_configs",
    "linear_attn_config", "full_attention_interval", "attn_type_list", "compress_ratios", "index_topk", "index_head_dim", "vocab_size",
    "sliding_window_pattern", "attention_chunk_size", "text_config", "model_type", "num_nextn_predict_layers", "mlp_layer_types",
    "cross_attention_layers", "moe_layer_freq", "expansion_ratio", "max_position_embeddings", "tie_word_embeddings", "moe_layers_enum",
)  # fmt: skip
whole = st.one_of(st.integers(-3, 70), st.sampled_from([-(10**30), 2**31, 2**63, 10**30, 10_000_000]))
text = st.one_of(st.text(max_size=6), st.sampled_from(["full_attention", "sliding_attention", "mamba", "M*-E", "bfloat16", "llama", "fp8"]))
scalar = st.one_of(st.none(), st.booleans(), whole, st.floats(), text)
value = st.recursive(scalar, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=3)), max_leaves=6)
mutation = st.tuples(st.sampled_from(["drop", "set", "set", "add"]), st.integers(0, 60), st.sampled_from(EXTRAS), value)


def mutated(seed: dict[str, Any], mutations: list[tuple[str, int, str, Any]]) -> dict[str, Any]:
    """A copy of a configuration with some fields dropped, replaced or added, nested objects included."""
    fields = deepcopy(seed)
    for how, index, key, new in mutations:
        objects = [fields, *(item for item in fields.values() if isinstance(item, dict))]
        target = objects[index % len(objects)]
        names = sorted(target, key=str)
        if how == "add" or not names:
            target[key] = new
        elif how == "drop":
            del target[names[index % len(names)]]
        else:
            target[names[index % len(names)]] = new
    return fields


def read(config: str | dict[str, Any]) -> ParsedConfig | None:
    """The parsed configuration; None where it was refused, in one printable sentence."""
    refused = None
    try:
        return parse_model_config(config)
    except BadConfigError as error:
        refused = str(error)
    assert "\n" not in refused
    assert 0 < len(refused.encode()) < 600
    return None


def check_sizes(parsed: ParsedConfig) -> None:
    """No size is negative, infinite, or zero without a stated reason."""
    for tp in (1, 3, 8):
        cache = model_cache(parsed.model, kv_dtype="bf16", tp=tp)
        parts = (cache.bytes_per_token, cache.window_bytes_max, cache.state_bytes, cache.prompt_bytes(8192))
        assert all(math.isfinite(part) and part >= 0 for part in parts)
        assert cache.prompt_bytes(8192) > 0
        assert cache.bytes_per_token or any("no layer's cache grows" in warning for warning in parsed.warnings)
        check_tp(parsed.model, tp)
    counts = model_parameters(parsed.model)
    assert 0 <= counts.active <= counts.total
    assert json.dumps([parsed.model.name, parsed.assumed, parsed.warnings, [f.value for f in parsed.fields]]).encode()


@fuzz
@given(seed=st.sampled_from(SEEDS), mutations=st.lists(mutation, min_size=1, max_size=4))
def test_a_damaged_configuration_is_read_or_refused_and_never_breaks(
    seed: dict[str, Any], mutations: list[tuple[str, int, str, Any]]
) -> None:
    parsed = read(mutated(seed, mutations))
    if parsed:
        check_sizes(parsed)


@fuzz
@given(fields=st.dictionaries(st.one_of(st.sampled_from(EXTRAS), text), value, max_size=8))
def test_any_object_is_read_or_refused(fields: dict[str, Any]) -> None:
    parsed = read(fields)
    if parsed:
        check_sizes(parsed)


@settings(fuzz, max_examples=min(EXAMPLES, 2000))
@given(seed=st.sampled_from(SEEDS), cut=st.integers(0, 400), put=st.text(max_size=3))
def test_a_cut_text_is_read_or_refused(seed: dict[str, Any], cut: int, put: str) -> None:
    whole_text = json.dumps(seed)
    parsed = read(whole_text[:cut] + put + whole_text[cut + 1 :])
    if parsed:
        check_sizes(parsed)
