"""Formulas of the method page: their values are those of the published layer and of the roofline."""

from app.views.formulas import formula_rows
from kvmodel import Scenario


def values(**fields):
    return {words.partition(":")[0].partition(",")[0]: value for words, _, value in formula_rows(Scenario(**fields))}


def test_values_of_the_published_layer_by_hand():
    said = values()
    # 8,192 rows: 2 x 8,192^3; 8,192 x 8,193 / 2; 2 x 64 heads x (128 + 128); H100 989.4 TFLOP/s over 3.35 TB/s
    assert said["Multiplication with weights"] == "Q projection [8,192 × 8,192] [8,192 × 8,192]: 1.10\u202fTFLOP"
    assert said["Causal attention"] == "33,558,528 pairs"
    assert said["Attention"] == "32,768 FLOP a pair"
    assert "15.1\u202fTFLOP ÷ 4.26\u202fGB = 3,550 FLOP/B" in said["Intensity"]
    assert said["Ridge"].endswith("decode 989 TFLOP/s ÷ 3.35\u202fTB/s = 295 FLOP/B")


def test_a_latent_is_absorbed_in_decode_and_formats_mix_at_their_own_peaks():
    said = values(model="deepseek-v3")
    # 2 x 128 heads x (128 + 64 + 128) and x (2 x 512 + 64)
    assert said["Latent attention (MLA)"] == "DeepSeek-V3: 81,920 FLOP a pair expanded, 278,528 absorbed"
    assert said["Experts that n rows touch"].startswith("8.00 of 256 by 1 row, ")
    assert said["Peak"].startswith("prefill 1,620 TFLOP/s: fp8 1,980, bf16 989 on H100 SXM; decode 1,190 TFLOP/s")


def test_a_latent_of_which_an_indexer_picks_rows_is_absorbed_in_both_phases():
    said = values(model="deepseek-v3.2")
    assert said["Attention"] == "278,528 FLOP a pair"
    assert said["Latent attention (MLA) with an indexer"] == "DeepSeek-V3.2: 278,528 FLOP a pair, 81,920 had K and V been expanded"


def test_what_is_held_pairs_with_every_new_row():
    assert values(prefill_held_tokens=8000)["Causal attention"] == f"{192 * 8000 + 192 * 193 // 2:,} pairs"
