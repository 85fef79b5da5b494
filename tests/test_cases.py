"""Reported cases with their right answers, where the shared folder of facts stands beside the checkout.

Every case about configurations, ranks, units and compute is tried, and every number it expects is computed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from kvmodel import BadQuantityError, Scenario, evaluate, parse_quantity
from kvmodel.cache import ModelCache, kv_dtype_of, model_cache
from kvmodel.config import ParsedConfig, parse_model_config
from kvmodel.display import NARROW_SPACE, bytes_both_text
from kvmodel.errors import BadConfigError
from kvmodel.flop import layer_flop
from kvmodel.ownership import flows
from kvmodel.pairs import full_pairs, shape_of
from kvmodel.placement import Placement
from kvmodel.ranks import rank_share, stage_caches
from kvmodel.records.model import Sliding
from kvmodel.registry import accelerators
from kvmodel.terms import decode_terms
from tests.configs import A3B

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "cases"
KINDS = ("CFG", "TP", "UNIT", "CMP")
ALL: list[dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text()) if (FOLDER / "cases.json").is_file() else []
ROWS = [row for row in ALL if row["id"].split("-")[0] in KINDS]

pytestmark = pytest.mark.skipif(not ROWS, reason="the shared folder of facts is not here")

GIB = 2**30
DTYPES = {"f16": "fp16"}
HIDDEN = {"hidden_size": 4096, "num_attention_heads": 64}
"""What a case about the cache leaves open."""


@dataclass(frozen=True)
class Case:
    """A reported case, with what its input describes."""

    given: dict[str, Any]

    def read(self, **options: Any) -> ParsedConfig:
        if "file" in self.given:
            return parse_model_config((FOLDER / self.given["file"]).read_text(), **options)
        fields = dict(self.given["fields"])
        if "kv_layers" in fields:
            fields["num_hidden_layers"] = fields.pop("kv_layers")
        return parse_model_config({**HIDDEN, **fields}, **options)

    @cached_property
    def parsed(self) -> ParsedConfig:
        return self.read()

    @cached_property
    def kv_dtype(self) -> str:
        stated = self.given.get("kv_dtype", "auto")
        word = stated.split()[0] if isinstance(stated, str) else "auto"
        return DTYPES.get(word, word)

    @property
    def tokens(self) -> int:
        return int(self.given.get("tokens", self.given.get("prompt_tokens", 0)))

    def cache(self, **options: Any) -> ModelCache:
        return model_cache(self.parsed.model, **{"kv_dtype": self.kv_dtype, **options})

    def rank(self, tp: int) -> Any:
        return rank_share(self.parsed.model, kv_dtype=self.kv_dtype, tokens=self.tokens or 1, tp=tp)

    def total(self) -> float:
        """Bytes of the prompt without the state, which does not grow."""
        return float(self.cache().prompt_bytes(self.tokens) - self.cache().state_bytes)

    def gib(self) -> Any:
        """GiB of the prompt, of each where several are given."""
        tokens = self.given["tokens"]
        return [self.cache().prompt_bytes(n) / GIB for n in tokens] if isinstance(tokens, list) else self.total() / GIB

    def keeping(self) -> int:
        return sum(n for n, layer in self.cache().layers if layer.growing or layer.capped)


def without_indexer(case: Case) -> float:
    return sum(n * layer.growing for n, layer in case.cache().layers)


def drafted(case: Case) -> ModelCache:
    """The cache with one layer of multi-token prediction under speculation."""
    fields = json.loads((FOLDER / case.given["file"]).read_text())
    inner = fields.get("text_config", fields)
    inner["mtp_num_hidden_layers"] = 1
    return model_cache(parse_model_config(fields, speculation=True).model)


def decode_reads(case: Case) -> float:
    """Bytes of cache that one decode step reads, all layers."""
    gpu = accelerators()["h100-sxm"]
    place = Placement(case.parsed.model, gpu, 1, 1, 1, "fp16", "auto")
    return sum(g.count * decode_terms(place, g)[2].pair * gpu.hbm_bandwidth for g in place.model.groups) * case.given["context"]


def weight_bytes_of_one_token(case: Case) -> float:
    """Bytes of weights one decode step of one request reads."""
    group, gpu = A3B.groups[0], accelerators()["h100-sxm"]
    terms = decode_terms(Placement(A3B, gpu, 1, 1, 1, "bf16", "bf16"), group)
    return group.count * (terms[1].fixed + terms[8].touched * shape_of(group).touched(1)) * gpu.hbm_bandwidth


def flow_bytes(case: Case) -> list[float]:
    """Bytes a token takes on each of the flows between prefill stages and decode ranks."""
    pp, tp = case.given["prefill"]["pp"], case.given["decode"]["tp"]
    return [stage.bytes_per_token for stage in stage_caches(case.parsed.model, kv_dtype=case.kv_dtype, tp=tp, pp=pp)] * tp


def sent_to_decode(case: Case) -> float:
    scenario = Scenario(model=case.parsed.model, prompt_tokens=1, prefill_tp=case.given["prefill_tp"], decode_tp=case.given["decode_tp"])
    return evaluate(scenario).kv.wire_bytes


def first_heads(case: Case) -> Any:
    return case.parsed.model.groups[0].attention


def attended(case: Case) -> float:
    new = case.given["prompt_tokens"] - case.given["cached_tokens"]
    return float(full_pairs(new, case.given["cached_tokens"]))


ANSWERS: dict[str, Callable[[Case], Any]] = {
    "kv_bytes_per_token": lambda c: c.cache().bytes_per_token,
    "kv_bytes_per_token_all_layers": lambda c: sum(n * (layer.growing + layer.indexer + layer.capped) for n, layer in c.cache().layers),
    "kv_bytes_prompt": lambda c: c.cache().prompt_bytes(c.tokens),
    "kv_bytes_prompt_windowed": lambda c: c.cache().prompt_bytes(c.tokens),
    "kv_bytes_total": Case.total,
    "kv_dtype": lambda c: kv_dtype_of(c.parsed.model, "auto"),
    "kv_heads": lambda c: first_heads(c).kv_heads,
    "head_dim": lambda c: first_heads(c).k_dim,
    "kv_layers": Case.keeping,
    "sliding_layers": lambda c: sum(g.count for g in c.parsed.model.groups if isinstance(g.attention, Sliding)),
    "no_exception": lambda c: c.parsed is not None,
    "auto": lambda c: c.cache(kv_dtype="auto").bytes_per_token,
    "fp8": lambda c: c.cache(kv_dtype="fp8").bytes_per_token,
    "block_64_tokens_bytes": lambda c: 64 * c.cache().bytes_per_token,
    "with_mtp_bytes_per_token": lambda c: drafted(c).bytes_per_token,
    "with_mtp_kv_layers": lambda c: sum(n for n, layer in drafted(c).layers if layer.growing),
    "gib": Case.gib,
    "with_indexer_gib_at_1462784": lambda c: c.cache().bytes_per_token * 1_462_784 / GIB,
    "without_indexer_gib_at_1462784": lambda c: without_indexer(c) * 1_462_784 / GIB,
    # ranks
    "kv_bytes_per_token_total": lambda c: c.cache().bytes_per_token,
    "kv_bytes_per_token_per_rank": lambda c: c.rank(c.given["tp"]).cache.bytes_per_token,
    "K_only_gib_per_rank": lambda c: c.rank(c.given["tp"]).cache.prompt_bytes(c.tokens) / 2 / GIB,
    "V_only_gib_per_rank": lambda c: c.rank(c.given["tp"]).cache.prompt_bytes(c.tokens) / 2 / GIB,
    "sum_gib_per_rank": lambda c: c.rank(c.given["tp"]).cache.prompt_bytes(c.tokens) / GIB,
    "kv_heads_per_prefill_rank": lambda c: c.rank(c.given["prefill_tp"]).cache.bytes_per_token * 2 / c.cache().bytes_per_token,
    "unique_bytes_per_token": lambda c: c.cache().bytes_per_token,
    "per_prefill_rank_bytes_per_token": lambda c: c.rank(c.given["prefill_tp"]).cache.bytes_per_token,
    "sum_over_prefill_ranks": lambda c: c.rank(c.given["prefill_tp"]).sum_over_ranks,
    "bytes_needed_by_decode": sent_to_decode,
    "prefill_ranks_that_must_send": lambda c: len(
        {f.prefill_rank for f in flows(first_heads(c).kv_heads, c.given["prefill_tp"], c.given["decode_tp"])}
    ),
    "per_rank_bytes_per_token": lambda c: c.rank(c.given["tp"]).cache.bytes_per_token,
    "sum_over_ranks": lambda c: c.rank(c.given["tp"]).sum_over_ranks,
    "total_bytes_per_token": lambda c: c.cache().bytes_per_token,
    "tokens_ratio_fixed_over_buggy": lambda c: c.cache().bytes_per_token / c.rank(c.given["tp"]).cache.bytes_per_token,
    "flows": lambda c: len(flow_bytes(c)),
    "bytes_per_token_per_flow": lambda c: set(flow_bytes(c)).pop(),
    "sum_over_flows": lambda c: sum(flow_bytes(c)),
    # compute
    "kv_bytes_read_per_step": decode_reads,
    "prefill_linear_flops": lambda c: sum(g.count * layer_flop(g, A3B.hidden).token for g in A3B.groups) * c.tokens,
    "decode_weight_bytes_batch1": weight_bytes_of_one_token,
    "decode_weight_time_ms": lambda c: weight_bytes_of_one_token(c) / (c.given["hbm_GB_per_s"] * 1e9) * 1e3,
    "attention_pairs": attended,
    "naive_full_pairs": lambda c: full_pairs(c.given["prompt_tokens"], 0),
    "naive_delta_pairs": lambda c: full_pairs(c.given["prompt_tokens"] - c.given["cached_tokens"], 0),
    # units
    "GB_per_s": lambda c: parse_quantity(c.given["link"], "B/s") / 1e9,
    "time_s": lambda c: c.given["bytes"] / parse_quantity(c.given["link"], "B/s"),
}
ROUNDED = {"CMP-02": 5e-3}
"""Cases whose tolerance is wider than that of printed digits, which is one in a thousand."""


def refusal(file: str) -> str:
    with pytest.raises(BadConfigError) as refused:
        parse_model_config((FOLDER / file).read_text())
    return str(refused.value)


def check_values(row: dict[str, Any], expected: dict[str, Any]) -> None:
    case = Case(row["input"])
    for name, value in expected.items():
        got = ANSWERS[name](case)
        exact = isinstance(value, int | str) or row["tolerance"].startswith("exact integer")
        assert got == (value if exact else pytest.approx(value, rel=ROUNDED.get(row["id"], 1e-3))), name


def check_gemma_defaults(row: dict[str, Any]) -> None:
    expected = dict(row["expected"]["either"][0])
    expected.pop("assumed")
    check_values(row, expected)
    said = " ".join(Case(row["input"]).parsed.assumed)
    assert all(f"{name} is not stated" in said for name in ("num_attention_heads", "num_key_value_heads", "head_dim"))


def check_encoder_decoder(row: dict[str, Any]) -> None:
    assert "encoder-decoder" in refusal(row["input"]["file"])


def check_mistral_names(row: dict[str, Any]) -> None:
    check_values(row, row["expected"]["either"][0])


def check_inconsistent(row: dict[str, Any]) -> None:
    zero, more, types = (refusal(file) for file in row["input"]["files"])
    assert "got 0" in zero
    assert "KV heads for" in more
    assert "got a list of 6; allowed: a list of 18" in types


def check_labels(row: dict[str, Any]) -> None:
    said = bytes_both_text(row["input"]["bytes"]).replace(NARROW_SPACE, " ")
    assert f"{row['expected']['GB']:.1f} GB" in said
    assert f"{row['expected']['GiB']:.1f} GiB" in said


def check_links(row: dict[str, Any]) -> None:
    expected = dict(row["expected"])
    others, bare = expected.pop("also_accept"), expected.pop("reject_or_ask")
    check_values(row, expected)
    assert {parse_quantity(text, "B/s") for text in others} == {50e9}
    for text in bare:
        with pytest.raises(BadQuantityError):
            parse_quantity(text, "B/s")


OTHERWISE: dict[str, Callable[[dict[str, Any]], None]] = {
    "CFG-06": check_gemma_defaults,
    "CFG-29": check_encoder_decoder,
    "CFG-31": check_mistral_names,
    "CFG-34": check_inconsistent,
    "UNIT-01": check_labels,
    "UNIT-02": check_links,
}
"""Cases that expect a sentence, a refusal, or one of two answers."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_reported_case_has_its_right_answer(row: dict[str, Any]) -> None:
    check = OTHERWISE.get(row["id"])
    check(row) if check else check_values(row, row["expected"])
