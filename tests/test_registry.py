"""The rows of `data/`: sourced, dated, sorted, found by every name people type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import KvModelError, UnknownNameError, find_model, registry
from kvmodel.records.base import Sourced
from kvmodel.records.hardware import Link
from kvmodel.terms import PREFILL_TERMS

TABLES = {
    "formats": registry.formats,
    "presets": registry.presets,
    "models": registry.models,
    "accelerators": registry.accelerators,
    "links": registry.links,
    "engines": registry.engines,
    "derates": registry.derates,
    "margins": registry.margins,
    "transports": registry.transports,
}
NAMED = {
    "models": (
        "llama-2-7b llama-3.1-8b llama-3-70b llama-3.1-405b mixtral-8x7b qwen3-32b qwen3-235b-a22b deepseek-v2-lite deepseek-v3 "
        "deepseek-r1 deepseek-v3.2 deepseek-v4-flash deepseek-v4-pro gpt-oss-120b gemma-3-27b llama-4-scout qwen3-next-80b-a3b "
        "nemotron-3-super"
    ),
    "accelerators": "a100-sxm h100-sxm h100-pcie h200-sxm h20 b200-sxm b300-sxm gb200 mi300x mi325x mi355x l40s rtx-pro-6000",
    "links": (
        "nvlink-3 nvlink-4 nvlink-5 pcie-4-x16 pcie-5-x16 ib-hdr-200 ib-ndr-400 ib-xdr-800 roce-100 roce-200 roce-400 roce-800 efa-200 "
        "ethernet-10 ethernet-25 ethernet-100 wan-100"
    ),
    "engines": ("ideal vllm-nixl vllm-mooncake sglang-mooncake tensorrt-llm layerwise-push lmcache-pd nvlink-cuda-ipc splitwise distserve"),
}


@pytest.fixture(params=TABLES)
def rows(request: pytest.FixtureRequest) -> Mapping[str, Sourced]:
    return TABLES[request.param]()


@pytest.mark.parametrize("table", NAMED)
def test_every_id_that_people_are_promised_is_there(table: str) -> None:
    assert set(NAMED[table].split()) <= set(TABLES[table]())


def test_every_row_names_a_page_or_a_definition_and_a_day(rows: Mapping[str, Sourced]) -> None:
    for name, row in rows.items():
        assert re.search(r"https?://\S+\.\S+|^definition: |aiconfigurator", row.source), name
        assert date(2025, 1, 1) < row.checked, name


def test_rows_are_sorted_by_id(rows: Mapping[str, Sourced]) -> None:
    assert list(rows) == sorted(rows)


def test_every_file_of_data_is_read() -> None:
    others = {"config_defaults", "config_refusals", "measurements"}
    assert {path.stem for path in registry.data_folder().glob("*.toml")} == set(TABLES) | others


def test_no_name_stands_for_two_models() -> None:
    owners: dict[str, set[str]] = {}
    for spec in registry.models().values():
        assert len({a.lower() for a in spec.aliases}) == len(spec.aliases), spec.id
        for name in (spec.id, spec.name, *spec.aliases):
            owners.setdefault(name.lower(), set()).add(spec.id)
    assert {name: ids for name, ids in owners.items() if len(ids) > 1} == {}


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("meta-llama/Meta-Llama-3-70B", "llama-3-70b"), ("LLAMA-3-70B", "llama-3-70b"), (" llama-3-70b ", "llama-3-70b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-r1"), ("openai/gpt-oss-120b", "gpt-oss-120b"), ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"), ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("deepseek-ai/DeepSeek-V4-Pro", "deepseek-v4-pro"), ("deepseek-ai/DeepSeek-V4-Flash", "deepseek-v4-flash"),
    ],
)  # fmt: skip
def test_a_model_is_found_by_its_hugging_face_name_whatever_the_case(typed: str, found: str) -> None:
    assert find_model(typed).id == found


def test_every_alias_leads_to_its_model() -> None:
    for spec in registry.models().values():
        assert all(find_model(name) is spec for name in (spec.id, *spec.aliases))


@pytest.mark.parametrize(("typed", "near"), [("llama-9", "llama"), ("deepseek-v33", "deepseek-v3"), ("gpt-oss-120", "gpt-oss-120b")])
def test_an_unknown_model_is_refused_with_the_nearest(typed: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=re.escape(repr(typed))) as refused:
        find_model(typed)
    assert any(name.startswith(near) for name in refused.value.nearest)
    assert all(find_model(name) for name in refused.value.nearest)


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("100gbe", "ethernet-100"),
        ("100GbE", "ethernet-100"),
        ("25 GbE", "ethernet-25"),
        ("eth100", "ethernet-100"),
        ("10gige", "ethernet-10"),
        ("ndr", "ib-ndr-400"),
        ("ndr400", "ib-ndr-400"),
        ("InfiniBand HDR", "ib-hdr-200"),
        ("400 roce", "roce-400"),
        ("pcie5", "pcie-5-x16"),
        ("nvlink", "nvlink-3"),
    ],
)
def test_links_as_people_write_them_have_theirs_first_among_the_nearest(typed: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as refused:
        registry.find("link", typed, registry.links())
    assert refused.value.nearest[0] == near


def test_an_unknown_link_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no link is called 'ib-ndr'; nearest: ib-ndr-400"):
        registry.find("link", "ib-ndr", registry.links())


@given(st.text(max_size=200))
def test_a_name_nobody_gave_is_never_guessed(name: str) -> None:
    known = {n.lower() for spec in registry.models().values() for n in (spec.id, *spec.aliases)}
    if name.strip().lower() not in known:
        with pytest.raises(UnknownNameError):
            find_model(name)


def test_accelerators_name_derates_that_exist() -> None:
    assert {a.derates for a in registry.accelerators().values()} <= set(registry.derates())


def test_fitted_constants_are_not_negative_and_one_for_each_term() -> None:
    for row in registry.derates().values():
        for fit in (row.prefill_bf16, row.prefill_fp8, row.decode_bf16, row.decode_fp8):
            assert fit is None or (len(fit.constants) == len(PREFILL_TERMS) and min(fit.constants) >= 0)


def test_a_peak_of_narrower_numbers_is_no_lower() -> None:
    for a in registry.accelerators().values():
        peaks = [a.peak_bf16, a.peak_fp8 or a.peak_bf16, a.peak_nvfp4 or a.peak_fp8 or a.peak_bf16]
        assert peaks == sorted(peaks), a.id


@pytest.mark.parametrize(
    ("link", "one_way"),
    [
        ("nvlink-3", 300e9), ("nvlink-4", 450e9), ("nvlink-5", 900e9), ("ib-ndr-400", 50e9), ("ib-hdr-200", 25e9),
        ("ethernet-100", 12.5e9), ("efa-200", 25e9),
    ],
)  # fmt: skip
def test_links_count_one_direction_and_keep_the_quoted_figure_beside(link: str, one_way: float) -> None:
    row = registry.links()[link]
    assert row.bandwidth == one_way
    assert ("both directions" in row.quoted) == (row.scope == "same-node")


@pytest.mark.parametrize(
    ("accelerator", "bf16", "hbm", "nvlink"),
    [
        ("a100-sxm", 312e12, 2.039e12, 300e9),
        ("h100-sxm", 989.4e12, 3.35e12, 450e9),
        ("h200-sxm", 989.4e12, 4.8e12, 450e9),
        ("b200-sxm", 2.25e15, 8e12, 900e9),
        ("mi300x", 1307.4e12, 5.3e12, 448e9),
    ],
)
def test_peaks_are_the_dense_ones_of_the_datasheets(accelerator: str, bf16: float, hbm: float, nvlink: float) -> None:
    row = registry.accelerators()[accelerator]
    assert (row.peak_bf16, row.hbm_bandwidth, row.scale_up_bandwidth) == pytest.approx((bf16, hbm, nvlink))


ROW = """
[[link]]
id = "{id}"
name = "L"
short = "L"
bandwidth = "{bandwidth}"
quoted = "q"
latency = "1 us"
message_seconds = "1 us"
achieved = 0.9
achieved_source = "assumed"
scope = "gpu"
source = "a page"
checked = 2026-11-29
"""


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (((("a"), "400"),), "links.toml: a: bandwidth: .*expected a quantity in B/s"),
        ((("b", "1 GB/s"), ("a", "1 GB/s")), "links.toml: ids must be sorted and unique"),
        ((("a", "1 GB/s"), ("a", "1 GB/s")), "links.toml: ids must be sorted and unique"),
    ],
)
def test_a_bad_row_is_refused_with_file_row_and_field(tmp_path: Path, rows: tuple[tuple[str, str], ...], words: str) -> None:
    path = tmp_path / "links.toml"
    path.write_text("".join(ROW.format(id=name, bandwidth=bandwidth) for name, bandwidth in rows))
    with pytest.raises(KvModelError, match=words):
        registry.read_rows(path, "link", Link)


@pytest.mark.parametrize(
    ("kv_dtype", "wire_dtype", "name"),
    [
        ("auto", "same", None),
        ("bf16", "same", None),
        ("fp8", "same", "fp8"),
        ("fp8_ds_mla", "same", "fp8"),
        ("int4_per_token_head", "same", "int4"),
        ("auto", "int8", "int8"),
        ("fp8", "int4", "int4"),
        ("nvfp4", "same", "nvfp4"),
    ],
)
def test_a_narrow_format_says_what_it_costs(kv_dtype: str, wire_dtype: str, name: str | None) -> None:
    found = registry.lossy_format(kv_dtype, wire_dtype)
    assert (found and found.id) == name
    assert found is None or found.accuracy.startswith("Lossy")
