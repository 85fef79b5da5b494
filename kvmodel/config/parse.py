"""A configuration becomes a ModelSpec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import ValidationError

from kvmodel.cache import model_cache
from kvmodel.config.formats import formats_of
from kvmodel.config.grouping import grouped
from kvmodel.config.heads import context_length, hidden_size
from kvmodel.config.layers import layers_of
from kvmodel.config.layouts import open_layout
from kvmodel.config.prediction import with_prediction
from kvmodel.config.reader import Field, Reader
from kvmodel.config.refusals import refuse_others
from kvmodel.config.text import printable, read_object
from kvmodel.errors import BadConfigError
from kvmodel.records.model import Compressed, Mla, ModelSpec


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """A model read from a configuration, with what had to be assumed."""

    model: ModelSpec
    assumed: tuple[str, ...]
    """Values the configuration does not state, one sentence each."""
    warnings: tuple[str, ...]
    """What a reader should check, one sentence each."""
    fields: tuple[Field, ...] = ()
    """Every value that was used, and where it came from."""


def parse_model_config(config: str | Mapping[str, Any], *, name: str = "your model", speculation: bool = False) -> ParsedConfig:
    """Read the text or the mapping of a `config.json`, a Mistral `params.json` or GGUF metadata.

    Fields decide first, then the class defaults of `model_type`, never the model's name. Layers for
    multi-token prediction count only under `speculation`.
    Raises BadConfigError with one sentence: where JSON breaks (line and column), which field is
    missing or wrong and what is allowed, or which architecture is not understood.

    >>> layer = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16}
    >>> [field.name for field in parse_model_config(layer).fields if field.origin == "derived"]
    ['torch_dtype', 'num_key_value_heads', 'intermediate_size', 'vocab_size']
    """
    reader = open_layout(read_object(config))
    refuse_others(reader)
    try:
        model = _model(reader, name, speculation=speculation)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadConfigError(f"config: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except RecursionError:
        raise BadConfigError("config: nested too deeply") from None
    _check_cache(reader, model)
    return ParsedConfig(model, tuple(reader.assumed), tuple(reader.warnings), tuple(reader.used.values()))


def _model(reader: Reader, name: str, *, speculation: bool) -> ModelSpec:
    formats = formats_of(reader)
    groups, order = grouped(with_prediction(reader, layers_of(reader, formats.dtype), speculation=speculation))
    return ModelSpec(
        id="custom",
        name=_title(reader, name),
        family=printable(str(reader.values.get("model_type") or "custom"))[:40],
        hidden=hidden_size(reader),
        vocab=_vocabulary(reader),
        tied_embeddings=reader.flag("tie_word_embeddings"),
        dtype=formats.dtype,
        kv_dtype=formats.kv,
        weight_dtype=formats.weight,
        expert_dtype=formats.expert,
        groups=groups,
        order=order,
        max_context=context_length(reader),
        source="a configuration of your own",
        checked=date.today(),
    )


def _vocabulary(reader: Reader) -> int:
    vocabulary = reader.optional("vocab_size", low=0)
    if vocabulary is None:
        reader.note("vocab_size", 0, "derived", why="so embedding and LM head are left out of the parameters")
    return vocabulary or 0


def _check_cache(reader: Reader, model: ModelSpec) -> None:
    """Say why a cache does not grow; refuse one that is empty."""
    cache = model_cache(model, kv_dtype="bf16")
    if not cache.prompt_bytes(1):
        raise BadConfigError("config: no layer keeps a cache: all are feed-forward, or read a cache that none holds")
    if not cache.bytes_per_token:
        reader.warn("no layer's cache grows with the prompt: each keeps a window or a state of fixed size")
    if any(isinstance(group.attention, Compressed) or (isinstance(group.attention, Mla) and group.indexer) for group in model.groups):
        reader.warn("vLLM packs this cache in rows of 8-bit floats when asked for fp8: kv_dtype fp8_ds_mla")


def _title(reader: Reader, name: str) -> str:
    stated = reader.values.get("_name_or_path") or reader.values.get("name")
    title = stated if isinstance(stated, str) and stated else name
    return printable(title).strip()[:80] or "your model"
