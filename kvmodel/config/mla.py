"""Multi-head latent attention and the indexers of sparse attention."""

from __future__ import annotations

from kvmodel.config.heads import query_heads
from kvmodel.config.reader import MAX_SIZE, Reader
from kvmodel.config.text import shown
from kvmodel.errors import BadConfigError
from kvmodel.records.model import Indexer, Mla

SCALE_GROUP = 128
"""Elements of an FP8 index key that share an FP32 scale."""


def is_latent(reader: Reader) -> bool:
    """Whether the model compresses keys and values into a latent vector."""
    off = reader.stated("use_mla")[0] is not None and not reader.flag("use_mla")
    return reader.has("kv_lora_rank") and not off


def latent_attention(reader: Reader) -> Mla:
    """MLA by its ranks; `head_dim` and `num_key_value_heads` of such files do not size the cache."""
    heads = query_heads(reader)
    value = reader.optional("v_head_dim")
    if value is None:
        value = reader.whole("hidden_size") // heads or 1
        reader.note("v_head_dim", value, "derived", why="hidden size over attention heads")
    return Mla(
        q_heads=heads,
        latent=reader.whole("kv_lora_rank"),
        rope=reader.whole("qk_rope_head_dim", low=0),
        nope=reader.whole("qk_nope_head_dim"),
        v_dim=value,
        q_rank=reader.optional("q_lora_rank", low=0) or 0,
    )


def index_key_bytes(dim: int) -> float:
    """Bytes of one FP8 index key with its scales. Source: vLLM 0.33.0 model_executor/models/deepseek_v2.py.

    >>> index_key_bytes(128)
    132.0
    """
    return dim + -(-dim // SCALE_GROUP) * 4.0


def indexers(reader: Reader, layers: int) -> list[Indexer | None]:
    """The indexer of each layer: all of them, those a schedule keeps, or none."""
    sparse = _block_sparse(reader, layers)
    if any(sparse):
        return _block_indexers(reader, sparse)
    if not reader.has("index_topk"):
        return [None] * layers
    dim = reader.whole("index_head_dim")
    one = Indexer(bytes_per_token=index_key_bytes(dim), heads=reader.whole("index_n_heads"), dim=dim, top_k=reader.whole("index_topk"))
    return [one if keeps else None for keeps in _schedule(reader, layers)]


def _schedule(reader: Reader, layers: int) -> list[bool]:
    """Which layers hold index keys; the others reuse the choice of a layer before.

    Source: transformers 5.24.0 models/glm_moe_dsa; vLLM 0.33.0 model_executor/models/deepseek_v2.py.
    """
    for name, keeping, sharing in (("indexer_types", "full", "shared"), ("index_topk_pattern", "F", "S")):
        listed = reader.stated(name)[0]
        if listed is not None:
            kinds = list(listed) if isinstance(listed, str) else reader.items(name) or []
            if len(kinds) != layers or any(kind not in (keeping, sharing) for kind in kinds):
                path = reader.path(name)
                raise BadConfigError(f"config: {path}: got {shown(listed)}; allowed: {keeping} or {sharing} for each of {layers} layers")
            reader.note(name, f"{kinds.count(keeping)} of {layers} layers", "file", reader.path(name))
            return [kind == keeping for kind in kinds]
    frequency = reader.optional("index_topk_freq") or 1
    offset = reader.optional("index_skip_topk_offset", low=0)
    offset = 2 if offset is None else offset
    return [max(layer - offset + 1, 0) % frequency == 0 for layer in range(layers)]


def _block_sparse(reader: Reader, layers: int) -> list[bool]:
    """MiniMax-M3: layers whose attention picks blocks of tokens."""
    flags = reader.items("sparse_attention_config.sparse_attention_freq", count=layers)
    if flags is None:
        types = reader.stated("layer_types")[0]
        flags = [name == "minimax_m3_sparse" for name in types] if isinstance(types, list) and len(types) == layers else []
    return [bool(flag) for flag in flags]


def _block_indexers(reader: Reader, sparse: list[bool]) -> list[Indexer | None]:
    """Keys of one head in BF16, no scales. Source: vLLM 0.33.0 models/minimax_m3/common/indexer.py."""
    dim, blocks = reader.whole("index_head_dim"), reader.optional("index_topk_blocks") or 16
    tokens = min(blocks * (reader.optional("index_block_size") or 128), MAX_SIZE)
    one = Indexer(bytes_per_token=2.0 * dim, heads=reader.whole("index_n_heads"), dim=dim, top_k=tokens)
    return [one if flag else None for flag in sparse]
