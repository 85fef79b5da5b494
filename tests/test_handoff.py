"""The handoff: identities of its times, closed forms, and the timeline against a plain recursion over all parts."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kvmodel import Evaluation, Scenario, evaluate
from kvmodel.plan import plan_of
from kvmodel.registry import engines
from tests.plain import holdings, walk
from tests.strategies import MODELS, scenarios

MOST_CHUNKS = 300

pipelined = scenarios(
    longest=20_000,
    overlap=st.sampled_from(("chunk", "layer", "layer-both")),
    engine=st.sampled_from(("ideal", "sglang-mooncake", "layerwise-push", "lmcache-pd", "vllm-nixl", "splitwise", "tensorrt-llm")),
    link_gbytes_per_s=None,
    shared_by=1,
)


def paced(scenario: Scenario, ratio: float) -> Scenario:
    """The scenario on a link that carries its cache in `ratio` of prefill's time: where both rule the end."""
    result = evaluate(scenario)
    needed = result.kv.wire_bytes / result.transfer.lanes / result.prefill.seconds / ratio / 1e9
    return scenario.with_changes(link_gbytes_per_s=min(max(needed, 1e-6), 1e5))


def chunks(scenario: Scenario) -> float:
    plan = plan_of(scenario)
    new = scenario.prompt_tokens - holdings(scenario, plan)[0]
    return 1 if plan.chunk is None else new / max(1, plan.chunk // scenario.batch)


def assert_as_walked(scenario: Scenario) -> None:
    result, walked, plan = evaluate(scenario), walk(scenario), plan_of(scenario)
    both = plan.overlap == "layer-both" and scenario.prompt_tokens >= plan.serial_below
    exposed = walked.exposed_both(result.decode.step_seconds, plan.model.layers) if both else walked.exposed()
    near = 1e-9 * (walked.prefill_end + result.transfer.seconds)
    assert result.prefill.seconds == pytest.approx(walked.prefill_end, rel=1e-9)
    assert result.kv.wire_bytes == pytest.approx(walked.bytes, rel=1e-12)
    assert result.transfer.exposed_seconds == pytest.approx(exposed, abs=near)
    last, late = walked.parts[-1], walked.wire_ends()[-1] - walked.parts[-1].x - walked.parts[-1].ready
    if result.bound == "link":
        assert late > 1e-10 * last.ready
    elif result.bound == "hidden":
        assert late <= near


@given(pipelined, st.floats(0.2, 5.0))
@example(  # the last layers of Gemma 3n own no cache
    Scenario(model="gemma-3n-e4b", prompt_tokens=455, overlap="layer", prefill_held_tokens=247, prefill_seconds=0.8026814446997775), 0.5
)
def test_the_closed_form_ends_where_stepping_through_every_part_ends(scenario: Scenario, ratio: float) -> None:
    assume(chunks(scenario) <= MOST_CHUNKS)
    assert_as_walked(paced(scenario, ratio))


@pytest.mark.parametrize("overlap", ["chunk", "layer", "layer-both"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("prefill_held", "decode_held"), [(0, 0), (3000, 0), (0, 5000), (7000, 3100), (3100, 7000), (11_000, 11_000)])
def test_every_kind_of_model_with_prefixes_on_either_side_ends_as_walked(
    model: str, overlap: str, prefill_held: int, decode_held: int
) -> None:
    for batch, chunk, ratio in ((1, 1024, 0.8), (1, 777, 1.1), (3, 4096, 1.3)):
        scenario = Scenario(
            model=model, prompt_tokens=12_345, overlap=overlap, batch=batch, chunk_tokens=chunk, engine="ideal",
            prefill_held_tokens=prefill_held, decode_held_tokens=decode_held,
        )  # fmt: skip
        assert_as_walked(paced(scenario, ratio))


@pytest.mark.parametrize(
    ("prompt", "chunk", "overlap", "weights", "gbytes_per_s"),
    [
        (12_000, 2048, "chunk", "fp8", 0.2471),
        (9757, 512, "layer", "fp8", 0.2069),
        (9757, 777, "chunk", "auto", 0.12654),
        (9757, 1000, "chunk", "auto", 0.12877),
        (12_000, 1024, "chunk", "fp8", 0.15),
    ],
)
def test_the_wire_may_wait_last_where_a_local_chunk_of_llama_4_ends(
    prompt: int, chunk: int, overlap: str, weights: str, gbytes_per_s: float
) -> None:
    # attention gets cheaper at each local chunk of 8,192 tokens: the decisive path turns there, in the middle
    assert_as_walked(
        Scenario(
            model="llama-4-scout", prefill_accelerator="h20", prefill_tp=1, prompt_tokens=prompt, chunk_tokens=chunk, overlap=overlap,
            weight_dtype=weights, link_gbytes_per_s=gbytes_per_s,
        )
    )  # fmt: skip


@given(
    scenarios(
        longest=40_000,
        model=st.sampled_from(("llama-4-scout", "llama-4-maverick")),
        prompt_tokens=st.integers(8193, 40_000),
        overlap=st.sampled_from(("chunk", "layer")),
        engine="ideal",
        prefill_accelerator=st.sampled_from(("h20", "h100-sxm")),
        chunk_tokens=st.one_of(st.sampled_from((512, 1024, 2048, 8192, 16_384)), st.integers(300, 5000)),
        prefill_seconds=None,
        wire_dtype="same",
        shared_by=1,
        decode_held_tokens=0,
    ),
    st.floats(0.8, 1.25),
)
def test_local_chunks_are_walked_wherever_prefill_cuts(scenario: Scenario, ratio: float) -> None:
    assume(chunks(scenario) <= MOST_CHUNKS)
    growing, windows = 12 * scenario.prompt_tokens, 36 * min(scenario.prompt_tokens, 8192)  # layers x tokens; windows go last
    assert_as_walked(paced(scenario, ratio * (growing + windows) / growing))


@pytest.mark.parametrize("overlap", ["chunk", "layer"])
@pytest.mark.parametrize("ratio", [0.3, 0.9, 1.5])
def test_an_engine_that_sends_its_prefix_early_starts_the_wire_with_prefill(overlap: str, ratio: float) -> None:
    early = Scenario(engine="sglang-mooncake", overlap=overlap, prompt_tokens=30_000, prefill_held_tokens=20_000, chunk_tokens=1000)
    assert walk(early).early > 0
    assert_as_walked(paced(early, ratio))


@given(scenarios())
def test_nothing_overlapped_leaves_the_whole_transfer(scenario: Scenario) -> None:
    result = evaluate(scenario.with_changes(overlap="serial"))
    assert result.transfer.exposed_seconds == result.transfer.seconds
    assert result.bound == ("exposed" if result.kv.wire_bytes else "nothing")


@given(pipelined)
def test_overlap_exposes_no_more_than_the_whole_transfer(scenario: Scenario) -> None:
    result = evaluate(scenario)
    assert 0 <= result.transfer.exposed_seconds <= result.transfer.seconds * (1 + 1e-9)
    assert result.transfer.exposed_seconds >= result.transfer.seconds - result.prefill.seconds - 1e-9 or scenario.overlap == "layer-both"


@given(scenarios(overlap=st.sampled_from(("chunk", "layer")), prefill_held_tokens=0, decode_held_tokens=0))
def test_sending_layer_by_layer_exposes_no_more_than_sending_chunk_by_chunk(scenario: Scenario) -> None:
    # layers that leave one by one share no messages, so where blocks hold all layers a chunk may be cheaper
    chunked = scenario.with_changes(chunk_tokens=scenario.chunk_tokens or 4096, cross_layer="no")
    by_chunk, by_layer = (evaluate(chunked.with_changes(overlap=way)).transfer.exposed_seconds for way in ("chunk", "layer"))
    assert by_layer <= by_chunk * (1 + 1e-9) + 1e-9


@given(scenarios())
def test_first_and_second_token_follow_the_engine_that_makes_and_releases_them(scenario: Scenario) -> None:
    result, engine = evaluate(scenario), plan_of(scenario).engine
    handshake = engine.handshake_seconds if scenario.contact == "first" else 0.0
    gap = result.transfer.exposed_seconds + engine.handoff_seconds + engine.admission_seconds + handshake
    assert result.gap_seconds == pytest.approx(gap)
    if engine.released_by == "prefill":
        first, second = result.prefill.seconds, result.prefill.seconds + gap + result.tpot_seconds
    else:
        first = result.prefill.seconds + gap + (result.decode.step_seconds if engine.first_token == "decode" else 0.0)
        second = first + result.tpot_seconds
    assert result.ttft_seconds == pytest.approx(first)
    assert result.second_token_seconds == pytest.approx(second)
    assert result.gap_share == pytest.approx(gap / first)
    n = scenario.output_tokens
    assert result.request_seconds == pytest.approx(first if n == 1 else second + (n - 2) * result.tpot_seconds)


@pytest.mark.parametrize(
    ("engine", "steps_before_first"),
    [
        ("ideal", 1),
        ("vllm-nixl", 1),
        ("layerwise-push", 1),
        ("sglang-mooncake", 0),
        ("tensorrt-llm", 0),
        ("splitwise", 0),
        ("distserve", 0),
    ],
)
def test_decode_runs_a_step_before_the_first_token_only_where_it_makes_it(engine: str, steps_before_first: int) -> None:
    # serving_systems: vLLM drops prefill's sampled token; SGLang, TensorRT-LLM, Splitwise and DistServe keep it
    result = evaluate(Scenario(engine=engine, prefill_seconds=1.0, decode_step_seconds=0.020, overlap="serial"))
    gap = 0.0 if engines()[engine].released_by == "prefill" else result.gap_seconds
    assert result.ttft_seconds == pytest.approx(1.0 + gap + steps_before_first * 0.020)


def published(gbytes_per_s: float) -> Evaluation:
    return evaluate(Scenario(model="llama-3-70b", prompt_tokens=8192, prefill_seconds=0.8, overlap="layer", link_gbytes_per_s=gbytes_per_s))


@pytest.mark.parametrize(("gbytes_per_s", "serial", "exposed"), [(50.0, 0.853687, 0.000671), (1.0, 3.484355, 1.894355)])
def test_per_layer_sending_of_the_70b_prompt_leaves_what_the_reports_reason(gbytes_per_s: float, serial: float, exposed: float) -> None:
    # 80 layers of 33,554,432 B behind 0.8 s of prefill (sgl-project/sglang#23515, #38309, #34905, #28529)
    result = published(gbytes_per_s)
    assert result.kv.prompt_bytes == 2_684_354_560
    assert 0.8 + result.transfer.seconds == pytest.approx(serial, abs=1e-6)
    assert result.transfer.exposed_seconds == pytest.approx(exposed, abs=1e-6)


@pytest.mark.parametrize(
    ("link", "prefill_seconds", "bound"),
    [("ib-ndr-400", 0.4, "hidden"), ("ethernet-10", 0.4, "link"), ("ethernet-25", 2.0, "hidden"), ("ib-hdr-200", 0.08, "link")],
)
def test_uniform_layers_meet_the_closed_form(link: str, prefill_seconds: float, bound: str) -> None:
    result = evaluate(Scenario(link=link, prefill_seconds=prefill_seconds, overlap="layer"))
    x, c = result.transfer.seconds / 80, prefill_seconds / 80
    assert result.transfer.exposed_seconds == pytest.approx(x if x <= c else 80 * x - 79 * c)
    assert result.bound == bound


def test_the_latency_comes_once_after_the_last_byte() -> None:
    wire = {"link": "roce-400", "engine": "layerwise-push", "prefill_seconds": 30.0}
    hidden = evaluate(Scenario(overlap="layer", **wire))
    x = (hidden.transfer.seconds - 380e-6) / 80
    assert hidden.transfer.exposed_seconds == pytest.approx(x + 380e-6)


def test_mha_on_100_gbit_is_link_bound_where_gqa_and_fp8_are_hidden() -> None:
    # the KV-cache bill: Llama 2 7B on a 100 Gb/s NIC falls behind; 8B GQA or FP8 KV keeps up
    one_gpu = Scenario(model="llama-2-7b", prefill_tp=1, decode_tp=1, link="roce-100", overlap="layer", prefill_seconds=0.4)
    mha, gqa, fp8 = (
        evaluate(one_gpu.with_changes(**c)) for c in ({}, {"model": "llama-3.1-8b"}, {"kv_dtype": "fp8", "prefill_seconds": 0.2})
    )
    assert (mha.kv.bytes_per_token, gqa.kv.bytes_per_token, fp8.kv.bytes_per_token) == (524_288, 131_072, 262_144)
    assert gqa.bound == "hidden"
    quick = evaluate(one_gpu.with_changes(prefill_seconds=0.2))
    assert quick.bound == "link"
    assert quick.transfer.exposed_seconds == pytest.approx(4_294_967_296 / 12.5e9 - 31 / 32 * 0.2)
    assert evaluate(one_gpu.with_changes(prefill_seconds=0.2, model="llama-3.1-8b")).transfer.exposed_seconds == pytest.approx(
        1_073_741_824 / 12.5e9 / 32
    )


@given(scenarios(batch=1), st.integers(2, 32))
def test_bytes_multiply_with_the_batch(scenario: Scenario, batch: int) -> None:
    one, many = evaluate(scenario), evaluate(scenario.with_changes(batch=batch))
    assert many.kv.wire_bytes == pytest.approx(batch * one.kv.wire_bytes)
    assert many.prefill.flop == pytest.approx(batch * one.prefill.flop)
    assert many.kv.prompt_bytes == one.kv.prompt_bytes


@given(scenarios(decode_held_tokens=0, prompt_tokens=st.integers(2, 50_000)), st.integers(1, 50_000))
def test_tokens_that_decode_holds_need_not_cross(scenario: Scenario, known: int) -> None:
    plan = plan_of(scenario)
    all_of_it, rest = evaluate(scenario), evaluate(scenario.with_changes(decode_held_tokens=known))
    assert rest.kv.wire_bytes <= all_of_it.kv.wire_bytes
    if not plan.engine.skips_held:
        assert rest.kv.wire_bytes == all_of_it.kv.wire_bytes
    elif known >= scenario.prompt_tokens + plan.block:
        assert (rest.kv.wire_bytes, rest.bound, rest.transfer.seconds) == (0, "nothing", 0)


@given(scenarios(prefill_held_tokens=0, prefill_seconds=None), st.integers(1, 60_000))
def test_a_held_prefix_is_computed_no_more_and_the_last_token_always(scenario: Scenario, held: int) -> None:
    cold, warm = evaluate(scenario), evaluate(scenario.with_changes(prefill_held_tokens=held))
    assert warm.prefill.flop <= cold.prefill.flop * (1 + 1e-12)
    one = evaluate(scenario.with_changes(prefill_held_tokens=scenario.prompt_tokens - 1, block_tokens=1))
    more = evaluate(scenario.with_changes(prefill_held_tokens=scenario.prompt_tokens + 5, block_tokens=1))
    assert one.prefill == more.prefill


def test_a_prefix_counts_in_whole_blocks() -> None:
    held = Scenario(engine="vllm-nixl", prompt_tokens=8500, decode_held_tokens=8009, prefill_held_tokens=8009)
    assert evaluate(held).kv.wire_bytes == (8500 - 8000) * 327_680  # blocks of 16 tokens
    assert evaluate(held) == evaluate(held.with_changes(decode_held_tokens=8000, prefill_held_tokens=8000))


@given(scenarios(prefill_seconds=None, decode_step_seconds=None))
def test_a_measured_time_replaces_the_modelled_one_and_its_band(scenario: Scenario) -> None:
    measured = evaluate(scenario.with_changes(prefill_seconds=1.25, decode_step_seconds=0.020))
    assert (measured.prefill.low, measured.prefill.seconds, measured.prefill.high) == (1.25, 1.25, 1.25)
    assert (measured.decode.low, measured.decode.step_seconds, measured.decode.high) == (0.020, 0.020, 0.020)
    assert measured.tpot_seconds == 0.020
    modelled = evaluate(scenario)
    assert modelled.prefill.low <= modelled.prefill.seconds <= modelled.prefill.high
    assert measured.prefill.flop == modelled.prefill.flop
