"""A configuration of the reader's own, pasted, uploaded and edited as a person does it."""

import json
import re

import pytest

from tests.configs import QWEN3

pytestmark = pytest.mark.browser

ROW = 35
"""Height of a row of the table of fields, and of its head, in pixels."""


def paste(one, text):
    box = one.page.get_by_label("Paste a config.json")
    box.fill(text)
    box.press("Control+Enter")
    one.settle()


def pasted(visit):
    one = visit(fresh=True).open("/weighs")
    paste(one, json.dumps(QWEN3))
    one.answers("147,456")
    return one


def edit(one, field, value):
    """Click into the value of a field, and type another."""
    grid = one.page.get_by_test_id("stDataFrame")
    grid.scroll_into_view_if_needed()
    name = grid.locator("td[aria-colindex='1']").filter(has_text=re.compile(f"^{field}$"))
    name.wait_for(state="attached")
    row = int(name.get_attribute("id").rpartition("-")[2])
    box = grid.bounding_box()
    one.page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + ROW * (row + 1.5))
    grid.locator(f"#glide-cell-1-{row}[aria-selected=true]").wait_for(state="attached")
    one.page.keyboard.press("Enter")
    typed = one.page.locator("#portal input, #portal textarea")
    typed.wait_for()
    typed.press("Control+A")
    one.page.keyboard.type(value, delay=30)
    one.page.keyboard.press("Enter")
    one.settle()


def notices(one):
    return one.page.locator(".kv-notice").all_inner_texts()


def leave_and_return(one):
    for link, drawn in (("One request", ".kv-timeline"), ("What it weighs", ".kv-growth")):
        one.page.get_by_role("link", name=link).click()
        one.page.wait_for_selector(f"{drawn} .main-svg")
        one.settle()


def test_a_value_typed_into_the_table_changes_the_answer_and_is_named(visit):
    one = pasted(visit)
    edit(one, "num_key_value_heads", "4")
    one.answers("73,728")
    assert "Changed: num_key_value_heads is 4; the file says 8." in notices(one)
    edit(one, "num_hidden_layers", "18")
    one.answers("36,864")
    edit(one, "num_key_value_heads", "8")
    one.answers("73,728")
    assert [text for text in notices(one) if text.startswith("Changed")] == ["Changed: num_hidden_layers is 18; the file says 36."]
    one.page.locator("h1 .kv-open").first.click()
    one.page.locator(".kv-explained").get_by_text("Halve it").wait_for()
    assert one.errors == []


def test_a_value_that_cannot_be_is_named_and_can_be_put_right(visit):
    one = pasted(visit)
    edit(one, "num_attention_heads", "many")
    assert any("num_attention_heads: got 'many'" in text for text in notices(one))
    one.answers("147,456")
    edit(one, "num_attention_heads", "16")
    assert not any("many" in text for text in notices(one))
    assert "Changed: num_attention_heads is 16; the file says 32." in notices(one)
    assert one.errors == []


def test_text_and_edits_are_still_there_after_a_look_at_another_view(visit):
    one = pasted(visit)
    edit(one, "num_key_value_heads", "4")
    leave_and_return(one)
    assert json.loads(one.page.get_by_label("Paste a config.json").input_value()) == QWEN3
    one.answers("73,728")
    edit(one, "num_hidden_layers", "18")
    one.answers("36,864")
    assert "Changed: num_key_value_heads is 4; the file says 8." in notices(one)
    assert one.errors == []


def test_another_configuration_begins_without_the_edits_of_the_last(visit):
    one = pasted(visit)
    edit(one, "num_key_value_heads", "4")
    one.answers("73,728")
    paste(one, json.dumps(QWEN3 | {"num_hidden_layers": 9}))
    one.answers("36,864")
    assert not any(text.startswith("Changed") for text in notices(one))


def test_a_file_is_uploaded_by_the_button_and_the_whole_zone_catches_a_drop(visit):
    one = visit(fresh=True).open("/weighs")
    zone = one.page.get_by_test_id("stFileUploaderDropzone")
    zone.scroll_into_view_if_needed()
    box = zone.bounding_box()
    caught = "(zone, [x, y]) => zone.contains(document.elementFromPoint(x, y))"
    for share in (0.02, 0.5, 0.98):
        assert zone.evaluate(caught, [box["x"] + share * box["width"], box["y"] + share * box["height"]])
    with one.page.expect_file_chooser() as chosen:
        zone.get_by_role("button", name="Upload", exact=True).click()
    chosen.value.set_files({"name": "config.json", "mimeType": "application/json", "buffer": json.dumps(QWEN3).encode()})
    one.settle()
    one.answers("147,456")
    assert one.errors == []
