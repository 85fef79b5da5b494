"""State layers: Mamba, Gated DeltaNet, Kimi Delta Attention, lightning attention, short convolution."""

from __future__ import annotations

from kvmodel.config.families import Variant
from kvmodel.config.formats import dtype_named
from kvmodel.config.heads import query_heads
from kvmodel.config.reader import Reader
from kvmodel.errors import BadConfigError
from kvmodel.records.model import Linear


def state_layer(reader: Reader, dtype: str) -> Linear:
    """The state of one layer. Raises BadConfigError where no field says which equations it follows."""
    variant = _variant(reader)
    makers = {"gdn": _delta, "kda": _kimi, "mamba2": _mamba2, "mamba1": _mamba1, "lightning": _lightning, "conv": short_convolution}
    return makers[variant](reader, dtype)


def _variant(reader: Reader) -> Variant:
    """By the fields that size the state; by the family where they leave it open."""
    if reader.stated("linear_num_value_heads")[0] is not None:
        return "gdn"
    if reader.stated("linear_attn_config")[0] is not None:
        return "kda"
    if reader.stated("attn_type_list")[0] is not None:
        return "lightning"
    if reader.family.state:
        return reader.family.state
    if reader.stated("mamba_d_state")[0] is not None:
        return "mamba2" if reader.stated("mamba_num_heads")[0] is not None else "mamba1"
    raise BadConfigError(
        "config: some layers keep a state, but no field says of which kind; understood: mamba_d_state, linear_num_value_heads"
    )


def state_dtype(reader: Reader, dtype: str) -> str:
    """Format of the recurrent state: stated, else that of the model, as vLLM keeps it."""
    stated = reader.text("mamba_ssm_dtype")
    if stated is not None and stated != "auto":
        return dtype_named(stated, reader.find("mamba_ssm_dtype")[1])
    if reader.family.id == "nemotron_h":
        reader.note("mamba_ssm_dtype", "float32", "derived", why="as vLLM keeps Nemotron-H where the file is silent")
        return "fp32"
    reader.note("mamba_ssm_dtype", dtype, "derived", why="the model's own, as vLLM keeps it; SGLang keeps float32")
    return dtype


def _delta(reader: Reader, dtype: str) -> Linear:
    heads = reader.whole("linear_num_value_heads")
    groups = reader.whole("linear_num_key_heads")
    if heads % groups:
        raise BadConfigError(f"config: {reader.path('linear_num_key_heads')}: got {groups}; allowed: a divisor of {heads} value heads")
    return Linear(
        variant="gdn",
        heads=heads,
        head_dim=reader.whole("linear_value_head_dim"),
        state_dim=reader.whole("linear_key_head_dim"),
        groups=groups,
        conv_kernel=reader.whole("mamba_d_conv", low=0),
        state_dtype=state_dtype(reader, dtype),
        conv_dtype=dtype,
    )


def _kimi(reader: Reader, dtype: str) -> Linear:
    heads = reader.optional("linear_num_heads")
    if heads is None:
        heads = query_heads(reader)
        reader.note("linear_num_heads", heads, "derived", reader.path("linear_attn_config.num_heads"), "as many as attention heads")
    dim = reader.optional("linear_head_dim")
    if dim is None:
        dim = reader.whole("qk_nope_head_dim")
        reader.note("linear_head_dim", dim, "derived", reader.path("linear_attn_config.head_dim"), "that of the attention without rotation")
    taps = reader.optional("mamba_d_conv", low=0)
    if taps is None:
        taps = 4
        reader.note("mamba_d_conv", taps, "derived", reader.path("linear_attn_config.short_conv_kernel_size"), "as in Kimi Linear")
    return Linear(variant="kda", heads=heads, head_dim=dim, state_dim=dim, conv_kernel=taps, state_dtype="fp32", conv_dtype=dtype)


def _mamba2(reader: Reader, dtype: str) -> Linear:
    alone = reader.family.layers == "state"
    heads = reader.whole("num_attention_heads" if alone else "mamba_num_heads")
    return Linear(
        variant="mamba2",
        heads=heads,
        head_dim=reader.whole("head_dim") if alone else _mamba_head(reader, heads),
        state_dim=reader.whole("mamba_d_state"),
        groups=reader.whole("mamba_n_groups"),
        conv_kernel=reader.whole("mamba_d_conv", low=0),
        state_dtype=state_dtype(reader, dtype),
        conv_dtype=dtype,
    )


def _mamba_head(reader: Reader, heads: int) -> int:
    if reader.find("mamba_head_dim")[0] not in (None, "auto"):
        return reader.whole("mamba_head_dim")
    inner = reader.optional("mamba_d_ssm")
    if inner is None:
        inner = reader.whole("mamba_expand") * reader.whole("hidden_size")
    if inner % heads:
        raise BadConfigError(f"config: {inner} state channels do not divide by {heads} state heads, and no mamba_head_dim is stated")
    reader.note("mamba_head_dim", inner // heads, "derived", why="state channels over state heads")
    return inner // heads


def _mamba1(reader: Reader, dtype: str) -> Linear:
    channels = _channels(reader)
    taps, state = reader.whole("mamba_d_conv", low=0), reader.whole("mamba_d_state")
    kept = state_dtype(reader, dtype)
    return Linear(
        variant="mamba1", heads=channels, head_dim=1, state_dim=state, conv_kernel=taps, state_dtype=kept, conv_dtype=dtype
    )  # fmt: skip


def _channels(reader: Reader) -> int:
    """Inner channels of Mamba-1; pure Mamba files may state them, in others `intermediate_size` is a feed-forward width."""
    if reader.family.layers == "state" and reader.stated("intermediate_size")[0] is not None:
        return reader.whole("intermediate_size")
    return reader.whole("mamba_expand") * reader.whole("hidden_size")


def _lightning(reader: Reader, dtype: str) -> Linear:
    heads = query_heads(reader)
    dim = reader.optional("head_dim") or max(1, reader.whole("hidden_size") // heads)
    return Linear(variant="lightning", heads=heads, head_dim=dim, state_dim=dim, state_dtype=state_dtype(reader, dtype), conv_dtype=dtype)


def short_convolution(reader: Reader, dtype: str) -> Linear:
    """LFM2's layers without attention: the last inputs of a short convolution."""
    taps = reader.whole("mamba_d_conv", low=0)
    return Linear(variant="conv", heads=reader.whole("hidden_size"), head_dim=1, state_dim=1, conv_kernel=taps, conv_dtype=dtype)
