"""Colours: contrast against the page, distances for colour-blind readers, one template a theme."""

import pytest

from app.palette import DARK, LIGHT, THEMES


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("meaning", ["prefill", "wire", "exposed", "decode", "pool", "other"])
def test_fills_stand_out_from_the_page(theme, meaning):
    assert contrast(theme[meaning], theme["bg"]) >= 3


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("meaning", ["prefill_text", "wire_text", "exposed_text", "decode_text", "pool_text", "ink", "body", "muted"])
def test_texts_can_be_read_on_page_and_panel(theme, meaning):
    assert contrast(theme[meaning], theme["bg"]) >= 4.5
    assert contrast(theme[meaning], theme["panel"]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("node", ["soft_prefill", "soft_decode", "soft_pool"])
def test_ink_can_be_read_on_nodes(theme, node):
    assert contrast(theme["ink"], theme[node]) >= 7


def test_both_themes_name_the_same_colours():
    assert LIGHT.keys() == DARK.keys()
    assert THEMES["dark"]["template"]["layout"]["hoverlabel"]["bgcolor"] == DARK["panel"]
