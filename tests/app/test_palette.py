"""Colours: contrast against the page, distances for colour-blind readers, one template a theme."""

from itertools import combinations, pairwise

import pytest

from app.palette import DARK, LIGHT, THEMES
from tests.ciede2000 import SEEN, distance, lab


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


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.0, 2.0), (50.0, 0.0, 0.0), 2.3669),
        ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
        ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_distances_of_colours_are_those_published(one, other, apart):
    # test data of Sharma, Wu and Dalal (2005), table 1
    assert distance(one, other) == pytest.approx(apart, abs=5e-5)
    assert distance(other, one) == pytest.approx(apart, abs=5e-5)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("seen", SEEN)
def test_meanings_stay_apart_for_colour_blind_readers(theme, seen):
    for one, other in combinations(("prefill", "wire", "exposed", "decode", "pool"), 2):
        apart = distance(lab(theme[one], seen), lab(theme[other], seen))
        assert apart >= (9 if {one, other} == {"prefill", "pool"} else 13), (one, other)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("seen", SEEN)
def test_steps_of_the_heat_ramp_stay_apart_and_in_order_for_colour_blind_readers(theme, seen):
    ramp = [lab(theme[f"heat{i}"], seen) for i in range(5)]
    light = [step[0] for step in ramp]
    assert light in (sorted(light), sorted(light, reverse=True))
    assert min(distance(a, b) for a, b in pairwise(ramp)) >= 9
