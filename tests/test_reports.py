"""Public reports about transfers, as inputs with the answer they should have got; the report is named at each.

Where the folder of collected cases is beside the checkout, the answers are compared with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvmodel import ModelSpec, Scenario, evaluate, parse_model_config
from kvmodel.breakdown import message_bytes
from kvmodel.evaluate import amounts_of
from kvmodel.plan import plan_of
from kvmodel.records.measurement import Measurement
from kvmodel.registry import links, measurements, validated


def heads(layers: int, kv_heads: int, head_dim: int) -> ModelSpec:
    fields = {"num_hidden_layers": layers, "num_attention_heads": 8 * kv_heads, "num_key_value_heads": kv_heads, "head_dim": head_dim}
    return parse_model_config(fields).model


def measured(**fields: str) -> Measurement:
    page = {"id": "s/r", "source": "https://github.com", "checked": "2026-11-29", "category": "kv_transfer", "confidence": "high"}
    return validated("report", [{**page, **fields}], Measurement)[0]


SHORT = Scenario(model=heads(28, 8, 128), prompt_tokens=16, block_tokens=16, prefill_tp=1, decode_tp=1, kv_split=2)


def test_a_block_of_sixteen_tokens_makes_a_descriptor_for_k_and_v_of_each_layer_or_one_for_all() -> None:
    # vllm-project/vllm#30207
    assert evaluate(SHORT).transfer.messages == 56
    assert message_bytes(plan_of(SHORT), amounts_of(SHORT)) == 32_768
    assert evaluate(SHORT).kv.wire_bytes == 1_835_008
    packed = SHORT.with_changes(kv_split=1, cross_layer="yes")
    assert evaluate(packed).transfer.messages == pytest.approx(1)
    assert message_bytes(plan_of(packed), amounts_of(packed)) == pytest.approx(1_835_008)


def test_layers_lie_together_only_where_heads_are_not_sliced() -> None:
    packed = SHORT.with_changes(kv_split=1, cross_layer="yes", prompt_tokens=1600, decode_tp=2)
    assert evaluate(packed).transfer.messages == 28 * 100 * 2


def test_more_nics_may_be_slower_than_one() -> None:
    # kvcache-ai/Mooncake#813: one of 400 Gb/s gave 42 GB/s, four together 30
    one = evaluate(Scenario(link_gbytes_per_s=42.0, lanes=1))
    four = evaluate(Scenario(link_gbytes_per_s=30.0 / 4, lanes=4))
    assert one.kv.wire_bytes / one.transfer.seconds == pytest.approx(42e9)
    assert four.kv.wire_bytes / four.transfer.seconds == pytest.approx(30e9)
    nominal = links()["ib-ndr-400"].bandwidth
    assert 42e9 / nominal == pytest.approx(0.84)
    assert 30e9 / (4 * nominal) == pytest.approx(0.15)
    assert evaluate(Scenario(engine="tensorrt-llm", achieved=0.15, lanes=4)).transfer.bandwidth_bytes_per_s == pytest.approx(7.5e9)


@pytest.mark.parametrize(("gbytes_per_s", "end", "exposed"), [(50.0, 0.800671, 0.000671), (1.0, 2.694355, 1.894355)])
def test_a_layer_is_sent_once_it_is_computed(gbytes_per_s: float, end: float, exposed: float) -> None:
    # sgl-project/sglang#23515, #38309, #34905, #28529: 80 layers of 33,554,432 B behind 0.8 s
    model = heads(80, 8, 128)
    result = evaluate(Scenario(model=model, prompt_tokens=8192, prefill_seconds=0.8, overlap="layer", link_gbytes_per_s=gbytes_per_s))
    assert result.kv.prompt_bytes == 2_684_354_560
    assert 0.8 + result.transfer.exposed_seconds == pytest.approx(end, abs=1e-6)
    assert result.transfer.exposed_seconds == pytest.approx(exposed, abs=1e-6)


@pytest.mark.parametrize(("gbytes_per_s", "end"), [(50.0, 1.0 + 2.684354560 / 50), (2.0, 0.5 + 2 * 2.684354560 / 2)])
def test_nothing_is_sent_before_the_first_chunk_is_computed(gbytes_per_s: float, end: float) -> None:
    # two chunks of 8,192 tokens, half a second each: a fast link leaves the last chunk, a slow one starts after the first
    two = Scenario(prompt_tokens=16_384, chunk_tokens=8192, overlap="chunk", prefill_seconds=1.0, link_gbytes_per_s=gbytes_per_s)
    assert 1.0 + evaluate(two).transfer.exposed_seconds == pytest.approx(end, rel=1e-6)


def test_a_cached_prefix_may_leave_before_the_first_chunk_is_computed() -> None:
    # SGLang sends it at once: of 24,576 tokens 8,192 are held, so on a slow link the wire starts at 0
    slow = Scenario(
        engine="sglang-mooncake", prompt_tokens=24_576, prefill_held_tokens=8192, prefill_seconds=1.0, link_gbytes_per_s=2.0,
        message_seconds=0.0, latency_seconds=0.0,
    )  # fmt: skip
    assert 1.0 + evaluate(slow).transfer.exposed_seconds == pytest.approx(3 * 2.684354560 / 2)
    late = slow.with_changes(engine="lmcache-pd", staging_copies=0)
    assert 1.0 + evaluate(late).transfer.exposed_seconds == pytest.approx(0.5 + 3 * 2.684354560 / 2)


@pytest.mark.parametrize(
    ("prefill", "decode", "copies"),
    [((4, 1), (1, 1), 1), ((1, 2), (2, 1), 1), ((2, 1), (4, 1), 2), ((4, 1), (4, 1), 2), ((8, 1), (1, 1), 1)],
)
def test_bytes_that_cross_depend_on_the_receiving_ranks_alone(prefill: tuple[int, int], decode: tuple[int, int], copies: int) -> None:
    # sgl-project/sglang#19086 (2 KV heads, TP 4 to 1) and vllm-project/vllm#43366 (PP 2 to TP 2): 30,720 B a token
    scenario = Scenario(
        model=heads(15, 2, 256), prompt_tokens=1000, prefill_tp=prefill[0], prefill_pp=prefill[1], decode_tp=decode[0], decode_pp=decode[1]
    )  # fmt: skip
    assert evaluate(scenario).kv.wire_bytes == copies * 30_720_000


def test_two_buffers_are_as_much_faster_as_kvwire_measured_when_both_take_equally_long() -> None:
    # jnros/kvwire: 1.92 of at most 2; its Qwen has 24 layers, sent one by one: 2 x 24 / 25
    qwen = Scenario(model=heads(24, 2, 64), prompt_tokens=4096, prefill_tp=1, decode_tp=1)
    assert evaluate(qwen).kv.prompt_bytes == 48 * 2**20
    equal = qwen.with_changes(prefill_seconds=evaluate(qwen).transfer.seconds)
    after, beside = (evaluate(equal.with_changes(overlap=way)).transfer.exposed_seconds for way in ("serial", "layer"))
    prefill = equal.prefill_seconds or 0.0
    assert (prefill + after) / (prefill + beside) == pytest.approx(measurements()["kvwire-overlap/equal times"].speed_up, abs=0.005)


def test_rates_of_log_lines_in_the_units_they_mean() -> None:
    # vllm-project/vllm#25388: "MB" are MiB; #41230: two ranks side by side; sgl-project/sglang#23937: decode counted in
    assert measured(bytes="70 MiB", seconds="9.862 ms").rate == pytest.approx(7.4427e9, rel=1e-3)
    assert measured(bytes="140 MiB", seconds="10 ms").rate == pytest.approx(14.6801e9, rel=1e-3)
    assert measured(bytes="2 GB", seconds="50 ms").rate == pytest.approx(40e9)
    # ai-dynamo/nixl#1332: 954 blocks of 36,864 B at 9.712 GB/s take 3.62 ms, not the 3.8 us of one
    assert measured(bytes=f"{954 * 36_864} B", bandwidth="9.711935 GB/s").time == pytest.approx(3.6211e-3, rel=2e-3)


# as collected


def case(shared: Path, name: str) -> dict[str, Any]:
    cases = json.loads((shared / "cases" / "cases.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = next(found for found in cases if found["id"] == name)
    return found


def model_of(fields: dict[str, int]) -> ModelSpec:
    return heads(fields.get("num_hidden_layers", fields.get("kv_layers", 0)), fields["num_key_value_heads"], fields["head_dim"])


def test_the_collected_case_of_descriptors(shared: Path) -> None:
    found = case(shared, "XFER-09")
    given, wanted = found["input"], found["expected"]
    asked = SHORT.with_changes(
        model=model_of(given["fields"]),
        prompt_tokens=given["prompt_tokens"],
        block_tokens=given["block_tokens"],
        kv_dtype=given["kv_dtype"],
    )
    result = evaluate(asked)
    assert result.transfer.messages == wanted["descriptors_layerwise"]
    assert result.kv.wire_bytes == wanted["total_bytes"]
    assert result.kv.wire_bytes / result.transfer.messages == wanted["bytes_per_descriptor"]
    packed = evaluate(asked.with_changes(kv_split=1, cross_layer="yes"))
    assert packed.transfer.messages == pytest.approx(wanted["descriptors_cross_layer"])


def test_the_collected_case_of_layers(shared: Path) -> None:
    found = case(shared, "XFER-07")
    given, wanted = found["input"], found["expected"]
    for i, rate in enumerate(given["link_GB_per_s"]):
        base = Scenario(
            model=model_of(given["fields"]), kv_dtype=given["kv_dtype"], prompt_tokens=given["prompt_tokens"],
            prefill_seconds=given["prefill_s"], link_gbytes_per_s=float(rate), lanes=1,
        )  # fmt: skip
        serial, layered = (evaluate(base.with_changes(overlap=way)).transfer.exposed_seconds for way in ("serial", "layer"))
        assert given["prefill_s"] + serial == pytest.approx(wanted["serial_s"][i], abs=1e-6)
        assert given["prefill_s"] + layered == pytest.approx(wanted["pipelined_s"][i], abs=1e-6)
        assert layered == pytest.approx(wanted["exposed_s"][i], abs=1e-6)


def test_the_collected_case_of_copied_heads(shared: Path) -> None:
    found = case(shared, "TP-02")
    given, wanted = found["input"], found["expected"]
    result = evaluate(
        Scenario(model=model_of(given["fields"]), prompt_tokens=1000, prefill_tp=given["prefill_tp"], decode_tp=given["decode_tp"])
    )
    assert result.kv.wire_bytes == 1000 * wanted["bytes_needed_by_decode"]
    assert result.kv.bytes_per_token == wanted["unique_bytes_per_token"]
    assert result.kv.prefill_rank_bytes == 1000 * wanted["per_prefill_rank_bytes_per_token"]


def test_the_collected_case_of_stages_towards_ranks(shared: Path) -> None:
    found = case(shared, "TP-07")
    given, wanted = found["input"], found["expected"]
    sides = {f"{side}_{degree}": given[side][degree] for side in ("prefill", "decode") for degree in ("tp", "pp")}
    result = evaluate(Scenario(model=model_of(given["fields"]), prompt_tokens=1000, **sides))
    assert result.kv.wire_bytes == 1000 * wanted["sum_over_flows"]
    assert result.kv.prefill_rank_bytes / sides["decode_tp"] == 1000 * wanted["bytes_per_token_per_flow"]
