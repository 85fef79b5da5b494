"""DeepSeek V4: a window of rows and, by layer, one row for every 4 or 128 tokens."""

from __future__ import annotations

from kvmodel.config.heads import query_heads
from kvmodel.config.mla import index_key_bytes
from kvmodel.config.reader import Reader
from kvmodel.config.text import shown
from kvmodel.errors import BadConfigError
from kvmodel.records.model import Compressed, Indexer

_RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
INDEXED_RATIO = 4
"""The ratio at which groups overlap and an indexer picks the rows that are read."""


def is_compressed(reader: Reader) -> bool:
    """Whether the model merges cached rows."""
    types = reader.stated("layer_types")[0]
    named = isinstance(types, list) and any(isinstance(t, str) and "compressed" in t for t in types)
    return named or reader.stated("compress_ratios")[0] is not None or reader.values.get("model_type") == "deepseek_v4"


def compressed_layers(reader: Reader, layers: int) -> list[tuple[Compressed, Indexer | None]]:
    """The cache of each layer. Raises BadConfigError for a ratio other than 0, 4 and 128."""
    made = {ratio: (_attention(reader, ratio), _indexer(reader, ratio)) for ratio in set(_ratios(reader, layers))}
    return [made[ratio] for ratio in _ratios(reader, layers)]


def _ratios(reader: Reader, layers: int) -> list[int]:
    """One ratio a layer; entries past the last layer belong to multi-token prediction."""
    stated, path = reader.stated("compress_ratios")
    if stated is not None:
        listed = reader.items("compress_ratios") or []
        ratios = [0 if ratio == 1 else ratio for ratio in listed[:layers]]
    else:
        names = reader.items("layer_types") or _default_names(reader, layers)
        ratios, path = [_RATIOS.get(name, name) if isinstance(name, str) else name for name in names[:layers]], reader.path("layer_types")
    if len(ratios) != layers:
        raise BadConfigError(f"config: {path}: got {len(ratios)} entries for {layers} layers; allowed: one for each layer")
    for ratio in ratios:
        if isinstance(ratio, bool) or ratio not in (0, 4, 128):
            raise BadConfigError(f"config: {path} names {shown(ratio)}; understood: ratios 0, 4 and 128")
    return ratios


def _default_names(reader: Reader, layers: int) -> list[str]:
    reader.assumed.append("layer_types is not stated: two layers of ratio 128, then 128 and 4 in turn, the class default of deepseek_v4")
    turns = ["compressed_sparse_attention" if index % 2 else "heavily_compressed_attention" for index in range(max(layers - 2, 0))]
    return (["heavily_compressed_attention"] * 2 + turns)[:layers]


def _attention(reader: Reader, ratio: int) -> Compressed:
    return Compressed(
        q_heads=query_heads(reader),
        row=reader.whole("head_dim"),
        window=reader.whole("sliding_window"),
        ratio=ratio,
        overlap=ratio == INDEXED_RATIO,
        q_rank=reader.optional("q_lora_rank", low=0) or 0,
        out_groups=reader.optional("o_groups") or 1,
        out_rank=reader.optional("o_lora_rank", low=0) or 0,
    )


def _indexer(reader: Reader, ratio: int) -> Indexer | None:
    if ratio != INDEXED_RATIO:
        return None
    dim = reader.whole("index_head_dim")
    heads, top_k = reader.whole("index_n_heads"), reader.whole("index_topk")
    return Indexer(bytes_per_token=index_key_bytes(dim) / ratio, heads=heads, dim=dim, top_k=top_k)
