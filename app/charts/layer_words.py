"""What the picture of one layer says: its operations, what crosses, what a decode row adds."""

from __future__ import annotations

from kvmodel.display import bytes_text, count_text
from kvmodel.matrices import cache_of
from kvmodel.operations import layer_matrices
from kvmodel.placement import Placement
from kvmodel.records.model import Chunked, Compressed, LayerGroup, Linear, Mla, Moe, NoAttention, Shared, Sliding


def sent_words(group: LayerGroup) -> str:
    """What crosses, with its verb: "K and V cross"; empty where nothing does."""
    names = sent_names(group)
    if not names:
        return ""
    verb = "crosses" if names in (["the latent row"], ["the state"]) else "cross"
    said = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{said} {verb}"


def sent_names(group: LayerGroup) -> list[str]:
    """Tensors that cross."""
    a = group.attention
    own = {"mla": ["the latent row"], "compressed": ["compressed rows"], "linear": ["the state"], "shared": [], "none": []}
    names = own.get(a.kind, ["K", "V"])
    return [*names, *(["the index keys"] if group.indexer else []), *(["the state"] if group.state else [])]


def words_of(group: LayerGroup, new: int, batch: int) -> dict[str, str]:
    """The picture's words by place."""
    crossing = _short(group)
    heads = group.attention.q_heads if hasattr(group.attention, "q_heads") else 0
    return {
        "prefill": f"<b>Prefill</b>, {count_text(new)} row{'s' * (new != 1)}{' a request' * (batch > 1)}",
        "decode": "<b>Decode</b>, 1 row",
        "project": _project(group),
        "attend": _attend(group),
        "feed": _feed(group),
        "inter": f"{count_text(new)} × {_inter(group, brackets=True)}",
        "inter_short": _inter(group),
        "row": f"1 × {_inter(group, brackets=True)}",
        "kept": f"<b>{crossing}</b>",
        "read": f"<b>{crossing}</b> {_read(group)}" if crossing else "",
        "appended": _appended(group),
        "scores": "QK<sup>T</sup>" if heads else "",
        "values": "PV" if heads else "Y" if isinstance(group.attention, Linear) else "",
        "row_scores": f"qK<sup>T</sup> × {heads}",
        "row_values": "pV" if heads else "y",
    }


def _short(group: LayerGroup) -> str:
    """What crosses, in a label."""
    own = {"mla": "latent", "compressed": "rows", "linear": "state", "shared": "", "none": ""}.get(group.attention.kind, "K V")
    return ", ".join(word for word in (own, "index" * bool(group.indexer), "state" * bool(group.state)) if word)


def _read(group: LayerGroup) -> str:
    """How a decode step uses what crossed."""
    if isinstance(group.attention, Linear):
        return "rewritten each step"
    return "read in part, each step" if group.indexer else "read in full, each step"


def _appended(group: LayerGroup) -> str:
    a = group.attention
    if isinstance(a, NoAttention | Shared):
        return ""
    return "nothing added" if isinstance(a, Linear) else f"+1 row{' of K, V' * _short(group).startswith('K')}"


def appended_bytes(group: LayerGroup, place: Placement) -> str:
    """What a decode row adds to one layer's cache."""
    stored = sum(m.stores for m in layer_matrices(group, place.model.hidden, cache_of(place, group), absorbed=True))
    return f"{bytes_text(stored)} a layer" if stored else ""


def _project(group: LayerGroup) -> str:
    a = group.attention
    if isinstance(a, NoAttention):
        return "no attention in this layer"
    if isinstance(a, Linear):
        return f"project: X → a state ({a.variant})"
    made = {"mla": "Q, latent", "compressed": "Q, rows", "shared": "Q"}.get(a.kind, "Q, K, V")
    return f"project: X → {made}"


def _attend(group: LayerGroup) -> str:
    a = group.attention
    if isinstance(a, NoAttention):
        return ""
    if isinstance(a, Linear):
        return "update the state and read it, row by row"
    if group.indexer:
        return f"attend: {a.q_heads} heads, best {count_text(group.indexer.top_k)}"
    if isinstance(a, Sliding) or (isinstance(a, Shared) and a.window):
        return f"attend: {a.q_heads} heads, last {count_text(a.window or 0)}"
    if isinstance(a, Chunked):
        return f"attend: {a.q_heads} heads, chunks of {count_text(a.chunk)}"
    if isinstance(a, Compressed):
        return f"attend: {a.q_heads} heads, window of {count_text(a.window)}" + (f", 1 in {a.ratio}" if a.ratio else "")
    return f"attend: {a.q_heads} heads, causal" + (", K and V expanded" if isinstance(a, Mla) else "")


def _feed(group: LayerGroup) -> str:
    ffn = group.ffn
    if ffn is None:
        return "no feed forward in this layer"
    if isinstance(ffn, Moe):
        shared = " and a shared one" if ffn.shared_inter else ""
        return f"feed forward: {ffn.top_k} of {ffn.experts} experts{shared}"
    return f"feed forward: {count_text(ffn.inter)} wide, {'gate and up' if ffn.gated else 'up'}, then down to X′"


def _inter(group: LayerGroup, *, brackets: bool = False) -> str:
    """Columns of the feed-forward block for a row."""
    ffn = group.ffn
    if not isinstance(ffn, Moe):
        return "" if ffn is None else count_text(ffn.inter)
    routed = f"{ffn.top_k} × {count_text(ffn.inter)}"
    if not ffn.shared_inter:
        return routed
    both = f"{routed} + {count_text(ffn.shared_inter)}"
    return f"({both})" if brackets else both
