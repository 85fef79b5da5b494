"""On which links prefill hides a handoff: as each link's own bound says, and as the line below the answer puts it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.charts import turn
from app.charts.full_rate import as_reached
from app.charts.hiding import Reach, hiding_table, reach_over, sent_ahead, way_text, whose_text
from app.state import State
from app.views import critical_length, interconnects, next_turn, offers, one_request
from kvmodel import Scenario, evaluate, registry
from kvmodel.display import time_text
from kvmodel.plan import plan_of
from kvmodel.results import Evaluation

LINKS = [link for link in registry.links().values() if link.scope != "same-node"]
NICS = [link.id for link in LINKS if link.scope != "site"]


def ahead(scenario: Scenario, link: str, **changes: int) -> Evaluation:
    """As the engine sends by itself while prefill computes, or layer by layer."""
    other = scenario.with_changes(link=link, **changes)
    return evaluate(as_reached(other if plan_of(other).overlap != "serial" else other.with_changes(overlap="layer")))


@settings(max_examples=12, deadline=None)
@given(
    st.builds(
        Scenario,
        model=st.sampled_from(["llama-3-70b", "deepseek-v3", "gemma-3-27b"]),
        link=st.sampled_from(["ib-ndr-400", "ethernet-25", "nvlink-4"]),
        engine=st.sampled_from(["ideal", "vllm-nixl", "sglang-mooncake", "layerwise-push"]),
        prompt_tokens=st.sampled_from([128, 4096, 32_768, 524_288]),
        lanes=st.sampled_from(["auto", 2]),
    ),
    st.sampled_from([("prompt_tokens", 16_384), ("batch", 8)]),
)
def test_a_link_is_named_where_its_own_bound_says_hidden(scenario, moved):
    field, value = moved
    reach = reach_over(sent_ahead(scenario), field, (value,))[0]
    alone = {link.id: ahead(scenario, link.id, **{field: value}) for link in LINKS}
    hidden = {name for name, result in alone.items() if result.bound in ("hidden", "nothing")}
    assert {link.id for link in reach.able} == hidden
    times = [alone[link.id].transfer.seconds for link in reach.able]
    assert times == pytest.approx(sorted(times))
    if " or faster" in reach.words():
        slowest = next(link.id for link in LINKS if reach.slowest == link.short)
        assert slowest in hidden & set(NICS)
        assert {name for name in NICS if alone[name].transfer.seconds < alone[slowest].transfer.seconds * 0.999} <= hidden
    assert (reach.words() == "on every NIC") == (set(NICS) <= hidden)
    assert (reach.words() == "on no NIC") == (not hidden & set(NICS))


def test_32k_of_llama_3_70b_hides_on_slower_links_than_the_engine_of_today_would_have_it():
    """10.7 GB: 0.86 s at 12.5 GB/s against 1.85 s of prefill; kernel TCP under vLLM NIXL reaches a fraction of its rate."""
    scenario = Scenario(prompt_tokens=32_768)
    by_link = {link: evaluate(scenario.with_changes(link=link)) for link in ("ethernet-100", "ethernet-25")}
    wire, prefill = (by_link["ethernet-100"].transfer.seconds, by_link["ethernet-100"].prefill.seconds)
    assert 0.8 < wire < 0.9 < prefill < by_link["ethernet-25"].transfer.seconds
    other = scenario.with_changes(engine="vllm-nixl")
    table = hiding_table(scenario, "prompt_tokens", (32_768,), other)
    assert table["h.where"] == ["on RoCE 100 or faster"]
    mine = scenario.with_changes(link="ethernet-100")
    assert hiding_table(mine, "prompt_tokens", (32_768,), None)["h.where"] == ["on RoCE 100 or faster"]
    assert evaluate(other.with_changes(link="ethernet-100", overlap="layer")).bound == "link"
    assert table["h.other"] == [
        "vLLM NIXL sends it whole and hides nothing; layer by layer at its costs it would hide on RoCE 100 or faster"
    ]
    assert evaluate(other.with_changes(link="roce-100", overlap="layer")).bound == "hidden"
    assert evaluate(other).bound == "exposed"
    assert "Ethernet 100" not in table["h.other"][0]


def test_the_words_say_none_all_a_slowest_or_a_count():
    slow, fast = (registry.links()[name] for name in ("ethernet-100", "ib-ndr-400"))
    assert Reach((), "", 13, whole=True).words() == "on no NIC"
    assert Reach((fast, slow), slow.short, 2, whole=True).words() == "on every NIC"
    assert Reach((fast, slow), slow.short, 3, whole=True).words() == "on Ethernet 100 or faster"
    assert Reach((fast, slow), fast.short, 5, True, slow.short).words() == "on 2 of 5 NICs, Ethernet 100 among them"
    assert Reach((fast, slow), slow.short, 5, whole=False).words() == "on 2 of 5 NICs, Ethernet 100 the slowest"


def test_what_the_engine_does_by_itself_is_said_of_every_engine():
    whole = {"serial": "itself sends the whole prompt at once"}
    ways = {"serial": "Sent layer by layer", "layer": "Sent layer by layer", "chunk": "Sent chunk by chunk"}
    for engine in registry.engines().values():
        scenario = Scenario(engine=engine.id)
        assert way_text(scenario) == ways[engine.overlap]
        said = f"{engine.name} {whole[engine.overlap]}" if engine.overlap in whole else f"as {engine.name} does"
        assert whose_text(scenario) == ("" if engine.id == "ideal" else said)
        other = whose_text(scenario.with_changes(overlap="layer"))
        assert (other == f"as {engine.name} does") == (engine.overlap == "layer")
        assert ("itself sends chunk by chunk" in other) == (engine.overlap == "chunk")


@pytest.mark.parametrize("view", [critical_length, interconnects], ids=["critical-length", "interconnects"])
def test_the_line_stands_below_the_answer_and_leads_to_the_other_engine(view):
    state = State(Scenario(prompt_tokens=32_768, link="ethernet-100"))
    picture = view.picture(state, (128, 32_768, 131_072)) if view is critical_length else view.picture(state)
    heading, second, *_ = picture.views["answer_view"]["items"]
    assert heading["children"][0]["tag"] == "h1"
    link = next(child for child in second["children"] if isinstance(child, dict) and child.get("tag") == "span")["children"][1]
    assert "engine=vllm-nixl" in link["href"]
    assert "link=ethernet-100" in link["href"]
    assert "prefill hides" in picture.views["answer_view"]["say"] + json.dumps(second)
    assert picture.views["answer_view"]["now"]["h.other"].endswith("on RoCE 100 or faster")
    assert not offers.hiding_offer(State(Scenario(engine="vllm-nixl")))


def test_a_line_says_what_another_format_would_change_and_its_link_compares():
    """8,192 + 500 tokens of 327,680 B: 164 requests in bf16 and 327 in fp8 beside 70B on 8 × H100; 2.68 GB over 50 GB/s is 53.7 ms."""
    said = one_request.tables(State(Scenario()), "prompt_tokens", (8_192, 16_384))["f.said"]
    assert said[0] == "In fp8 the handoff would add 26.8\u202fms and decode would hold 327 requests of this length, not 164"
    own, other = (evaluate(Scenario(kv_dtype=name, prompt_tokens=16_384)) for name in ("auto", "fp8"))
    holds = [e.memory.decode.batch_fits for e in (other, own)]
    more = f"decode would hold {holds[0]} requests of this length, not {holds[1]}"
    assert said[1] == f"In fp8 the handoff would add {time_text(other.gap_seconds)} and {more}"
    [back] = one_request.tables(State(Scenario(kv_dtype="fp8")), "prompt_tokens", (8_192,))["f.said"]
    assert back == "In bf16 the handoff would add 53.7\u202fms and decode would hold 164 requests of this length, not 327"
    links = [offers.format_blocks(State(Scenario(kv_dtype=name)))[0]["children"][0]["href"] for name in ("auto", "fp8")]
    assert links == ["?kv_dtype=fp8&pin=defaults", "?pin=kv_dtype%3Dfp8"]
    assert offers.format_blocks(State(Scenario(model="deepseek-v3", kv_dtype="fp8"))) != []


def test_the_next_turn_says_what_another_engine_would_make_of_it():
    state = State(Scenario())
    now = next_turn.picture(state).views["answer_view"]["now"]
    other = State(state.scenario.with_changes(engine="vllm-nixl"))
    row = turn.turn_rows(other, "delta_tokens", (state.turn.delta_tokens,))[0]
    least = min(row.by_key["pull-back", True].ttft_seconds, row.by_key["pool", True].ttft_seconds)
    assert now["o.said"] == f"with vLLM NIXL pull back takes {time_text(least)}"
    assert "o.said" not in next_turn.picture(other).views["answer_view"]["now"]


def test_one_chunk_is_the_reason_only_where_nothing_hides():
    scenario = Scenario(engine="sglang-mooncake")
    assert hiding_table(scenario, "prompt_tokens", (8192,), None)["h.where"] == ["on no NIC, as it is one chunk"]
    held = Scenario(overlap="chunk", chunk_tokens=8192, decode_held_tokens=8192)
    assert hiding_table(held, "prompt_tokens", (8192,), None)["h.where"] == ["on every NIC"]
