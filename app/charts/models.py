"""Every model of the registry by what its cache weighs, in a table."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from app.live import block
from kvmodel import registry
from kvmodel.cache import model_cache
from kvmodel.display import bytes_text
from kvmodel.errors import KvModelError
from kvmodel.records.model import ModelSpec
from kvmodel.scenario import Scenario

LENGTHS = ((1024, "1k"), (8192, "8k"), (32_768, "32k"), (131_072, "128k"))
"""Prompts compared, with what the table's heads call them."""
KINDS = {
    "full": "full attention",
    "sliding": "windows",
    "chunked": "chunks",
    "mla": "latent",
    "compressed": "compressed rows",
    "shared": "shared layers",
    "linear": "state",
}
"""What layers keep, in a word; layers without attention keep nothing."""


@lru_cache(maxsize=16)
def weights_of_models(kv_dtype: str) -> tuple[tuple[str, str, str, tuple[float, ...]], ...]:
    """(id, name, kinds, bytes of each prompt) of every model that the dtype can hold, lightest 8k prompt first."""
    found = []
    for spec in registry.models().values():
        try:
            cache = model_cache(spec, kv_dtype=kv_dtype)
        except KvModelError:
            continue
        found.append((spec.id, spec.name, kinds_of(spec), tuple(float(cache.prompt_bytes(tokens)) for tokens, _ in LENGTHS)))
    return tuple(sorted(found, key=lambda row: (row[3][1], row[0])))


def kinds_of(spec: ModelSpec) -> str:
    """What a model's layers keep, most layers first: `windows 52, full attention 10`."""
    counts: dict[str, int] = {}
    for index in spec.sequence:
        kind = KINDS.get(spec.groups[index].attention.kind)
        if kind:
            counts[kind] = counts.get(kind, 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items(), key=lambda pair: -pair[1]))


def models_block(scenario: Scenario, others: str, told: str) -> dict[str, Any]:
    """The table; a name opens the page with that model and the rest of the scenario, `others` being its query without the model.

    `told` says what following a link does.
    """
    chosen = registry.find_model(scenario.model).id if isinstance(scenario.model, str) else ""
    heads = ("Model", "Layers keep", *(name for _, name in LENGTHS))
    head = block("tr", *(block("th", text, scope="col", class_="kv-wide" if i == 1 else "") for i, text in enumerate(heads)))
    rows = []
    for model, name, kinds, weights in weights_of_models(scenario.kv_dtype):
        link = block("a", name, href="?" + "&".join(part for part in (f"model={model}", others) if part), target="_self", title=told)
        cells = [block("td", link), block("td", kinds, class_="kv-wide"), *(block("td", bytes_text(b)) for b in weights)]
        rows.append(block("tr", *cells, class_="kv-chosen" if model == chosen else ""))
    table = block("table", block("thead", head), block("tbody", *rows), class_="kv-table kv-models")
    return block("div", table, class_="kv-scroll kv-long", tabindex="0", role="region", aria_label="Every model")
