"""What stands behind the numbers of one request: memory of each side, and what a band would change."""

import pytest

from app.charts import request
from app.over import evaluate_over, token_positions
from app.views import one_request
from kvmodel import Scenario, evaluate
from kvmodel.registry import accelerators


def over(**fields):
    scenario = Scenario(**fields)
    return evaluate_over(scenario, "prompt_tokens", token_positions(scenario.prompt_tokens))


def test_memory_of_each_side_is_its_parts_and_the_batch_that_fits():
    o = over(decode_batch=32)
    table, memory = request.behind_table(o), o.rows[o.at].memory
    # 17.6 GB of weights a rank; 8,192 tokens of 40,960 B; 8,192 x 70,656 B; 0.9 x 79.11 GiB
    assert table["b.prefill_memory"][o.at] == "weights 17.6 + cache 0.336 + work 0.579 of 76.4\u202fGB; batch 173 fits"
    assert table["b.prefill_parts"][o.at] == (
        "17.6\u202fGB weights + 336\u202fMB cache + 579\u202fMB workspace of 76.4\u202fGB a GPU; batch 173 fits"
    )
    assert table["b.decode_parts"][o.at] == (
        f"17.6\u202fGB weights + 11.4\u202fGB cache + 57.5\u202fMB workspace of 76.4\u202fGB a GPU; batch {memory.decode.batch_fits} fits"
    )
    assert request.behind_table(over(prefill_tp=1))["b.prefill_memory"][0].endswith("; not one request fits")


def test_a_note_stands_by_the_band_and_in_the_answer_at_the_same_positions():
    o = over(overlap="layer", link_gbytes_per_s=8.0)
    notes = [evaluate(o.scenario.with_changes(prompt_tokens=n)).band_note for n in o.values]
    table = request.behind_table(o) | request.answer_table(o)
    assert any(notes)
    assert not all(notes)
    for band, step, note in zip(table["b.band"], table["b.step_band"], notes, strict=True):
        assert band.endswith(f". {note}" if note else ".")
        assert step.endswith(f". {note}" if note else ".")
    said = [evaluate(o.scenario.with_changes(prompt_tokens=n)).verdict for n in o.values]
    assert table["answer.text"] == said


@pytest.mark.parametrize("accelerator", sorted(accelerators()))
def test_each_side_s_memory_has_a_row_with_the_page_its_size_was_read_on(accelerator):
    rows = {row["children"][0]["children"][0]["children"][0]: row for row in one_request.behind(over(decode_accelerator=accelerator))[1:-1]}
    page = accelerators()[accelerator].hbm_visible_source
    assert page.split()[0].rstrip(",;") in str(rows["Decode memory"])
    assert "issues/27508" in str(rows["Prefill memory"])
