"""List measured prefill and decode times beside the model's, each with its error and why.

    python -m tests.list_published            rows of data/measurements.toml of category prefill_decode

None of these rows is used in the fit. Why a row is off is worked out from the row itself (FLOP/s beyond
what kernels reach, no gain over half the ranks) or stated of its series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvmodel import find_model, parse_model_config
from kvmodel.bands import prefill_band, step_band
from kvmodel.compute import PhaseTime, phase_time
from kvmodel.placement import Placement
from kvmodel.records.measurement import Measurement
from kvmodel.records.model import ModelSpec
from kvmodel.registry import accelerators, measurements

MODELS = {
    "Llama 2 70B": "llama-2-70b",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Qwen2.5-72B-Instruct": "qwen2.5-72b",
    "Qwen3-235B": "qwen3-235b-a22b",
    "Qwen3-8B": "qwen3-8b",
}
BLOOM = {"model_type": "bloom", "hidden_size": 14336, "n_layer": 70, "n_head": 112, "vocab_size": 250_880, "torch_dtype": "bfloat16"}
"""https://huggingface.co/bigscience/bloom/blob/main/config.json: not among the models of the page."""
ACCELERATORS = {"A100": "a100-sxm", "H100": "h100-sxm", "H200": "h200-sxm", "H800": "h100-sxm"}
"""An H800 is an H100 with 400 GB/s of NVLink, both directions, in place of 900."""

HIDDEN = 0.8
"""Share of the dense FP16 peak that no prefill reaches: the grid's best large multiplications reach 0.78 on an H100."""
NO_FASTER = 0.8
"""Share of the time on half the ranks above which a step is bound by launches and waits, not by work."""

STATED: Mapping[str, str] = {
    "splitwise-sim": "engine of 2023: kernels launched one by one and older ones, more so the more ranks share a layer",
    "mooncake-vllm-h800": "some 40 ms of proxy, HTTP and tokenizer are in it; NVLink of an H800 is less than half of the H100's assumed",
    "fabric-lib": "time to the first token of a server, format of weights not stated (BF16 assumed), scheduling in it",
    "tt-qwen25-72b": "time seen by a client, server and network in it",
    "vllm-llama": "measured on vLLM, whose share of bandwidth on the weights is 70 %",
}
"""What the source says of a series, or what is known of its engine."""


@dataclass(frozen=True)
class Listed:
    """One measured time beside the modelled one."""

    row: Measurement
    seconds: float
    """Modelled."""
    low: float
    high: float
    share: float
    """Share of the peak FLOP/s (prefill), or of the memory bandwidth on the weights (decode), that the measured time amounts to."""
    launch_bound: bool
    """The same on half the ranks was measured hardly slower."""

    @property
    def error(self) -> float:
        """Modelled over measured, less one."""
        assert self.row.seconds is not None
        return self.seconds / self.row.seconds - 1

    @property
    def why(self) -> str:
        """Why the two differ; says so where they do not."""
        assert self.row.seconds is not None
        if self.row.phase == "prefill" and self.share > HIDDEN:
            return f"{self.share:.0%} of the FP16 peak: not the whole prompt, part of it was cached"
        if self.low <= self.row.seconds <= self.high:
            return "in the band"
        stated = next(text for prefix, text in STATED.items() if self.row.id.startswith(prefix))
        return f"launch bound, hardly faster than on half the ranks; {stated}" if self.launch_bound else stated


def model_of(row: Measurement) -> ModelSpec:
    """The model a row names."""
    return parse_model_config(BLOOM).model if row.model == "BLOOM 176B" else find_model(MODELS[row.model or ""])


def placement_of(row: Measurement) -> Placement:
    """The row's model on its accelerators, weights in 16 bits."""
    tp = (row.prefill_tp if row.phase == "prefill" else row.decode_tp) or row.prefill_tp or 1
    kv = "fp8" if row.dtype and "fp8 KV" in row.dtype else "bf16"
    return Placement(model_of(row), accelerators()[ACCELERATORS[row.gpu or ""]], tp, 1, 1, kv, "bf16")


def listed() -> list[Listed]:
    """All measured prefill and decode times, in the order of the data."""
    rows = [row for row in measurements().values() if row.category == "prefill_decode"]
    times = {_setting(row, placement_of(row).tp): row.seconds or 0.0 for row in rows}
    return [_listed(row, times.get(_setting(row, placement_of(row).tp / 2), 0.0)) for row in rows]


def _setting(row: Measurement, ranks: float) -> tuple[object, ...]:
    return row.phase, row.model, row.gpu, row.tokens, row.dtype, ranks


def _listed(row: Measurement, on_half: float) -> Listed:
    place, tokens, batch = placement_of(row), row.tokens or 1, row.batch or 1
    time = phase_time(place, row.phase or "prefill")
    prefill = row.phase == "prefill"
    seconds = float(time.prefill(tokens, 0, batch) if prefill else time.step(tokens, batch))
    low, high = prefill_band(time, seconds, tokens, 0, batch) if prefill else step_band(time, seconds, tokens, batch)
    launch_bound = on_half > 0 and (row.seconds or 0.0) > NO_FASTER * on_half
    return Listed(row, seconds, low, high, _share(row, place, time, tokens, batch), launch_bound)


def _share(row: Measurement, place: Placement, time: PhaseTime, tokens: int, batch: int) -> float:
    """Of the peak FLOP/s in prefill, of the memory bandwidth in decode."""
    assert row.seconds is not None
    if row.phase == "prefill":
        return float(time.prefill_flop(tokens, 0, batch)) / (row.seconds * place.accelerator.peak_bf16 * place.tp)
    swept = sum(layer.count * layer.flop.token for layer in time.layers)  # two FLOP and two bytes a parameter
    return swept / place.tp / place.accelerator.hbm_bandwidth / row.seconds


def lines() -> Iterator[str]:
    """The table."""
    yield "measured times, modelled, error, share of peak (FLOP/s in prefill, weights over bandwidth in decode), and why"
    for item in listed():
        row, ms = item.row, (item.row.seconds or 0.0) * 1e3
        yield f"  {row.id:56} {ms:9.1f} ms  {item.seconds * 1e3:9.1f} ms  {item.error:+6.0%}  {item.share:5.0%}  {item.why}"


if __name__ == "__main__":
    print("\n".join(lines()))
