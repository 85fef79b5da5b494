"""Fit the transports' constants to published measurements and say how well they predict.

    python tests/fit_transports.py                    prints fits, errors with each source left out, and every miss
    python tests/fit_transports.py --write            also writes the constants to data/transports.toml
    python tests/fit_transports.py --predict FILE     predicts the rows of a table in the form of tests/published_rows.py

A constant is found where the robust loss of log(predicted / measured) is least. Each source counts once,
however many rows it prints; the stated default of each constant counts as one more, so one that no
measurement bears on stays there. Rows under load, or whose nominal rate is unknown, are predicted but not
fitted. Leaving a source out means fitting without any row of that address.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from kvmodel.records.measurement import Measurement
from kvmodel.records.transport import Constants, Transport
from kvmodel.registry import data_folder, measurements, transports
from kvmodel.transport import predicted_rate, predicted_seconds
from tests.published_rows import read_table

NAMES = tuple(Constants.model_fields)
SCATTER = 0.4
"""What two sources of one transport differ by: some 40 %."""
PULL = float(np.log(2.0))
"""What a default may be off by: a factor of two."""


def usable(rows: Iterable[Measurement], transport: str) -> list[Measurement]:
    """Rows of a transport whose rate is known."""
    return [row for row in rows if row.transport == transport and row.rate is not None]


def log_error(row: Measurement, transport: Transport, constants: Constants | None = None) -> float:
    """Logarithm of predicted over measured time."""
    assert row.rate is not None
    return float(np.log(row.rate / predicted_rate(row, transport, constants)))


def fit(transport: Transport, rows: list[Measurement]) -> Constants:
    """Constants that predict the rows best; the defaults where there are none."""
    start = np.log([getattr(transport.defaults, name) for name in NAMES])
    rows = [row for row in rows if row.nominal and not row.loaded]
    if not rows:
        return transport.defaults
    count = Counter(row.source for row in rows)
    weight = np.array([count[row.source] ** -0.5 for row in rows])

    def residuals(logs: np.ndarray) -> np.ndarray:
        constants = constants_of(logs)
        off = np.array([log_error(row, transport, constants) for row in rows])
        return np.concatenate([weight * off / SCATTER, (logs - start) / PULL])

    high = np.where([name == "achieved" for name in NAMES], 0.0, np.inf)
    found = least_squares(residuals, np.minimum(start, high - 1e-6), bounds=(-np.inf, high), loss="soft_l1")
    return constants_of(found.x)


def constants_of(logs: np.ndarray) -> Constants:
    """Constants from their logarithms."""
    return Constants.model_construct(**{name: float(value) for name, value in zip(NAMES, np.exp(logs), strict=True)})


def bearing(transport: Transport, rows: list[Measurement], constants: Constants) -> dict[str, int]:
    """For each constant, the sources with a row whose time changes by a tenth of the constant's own change, or more."""
    found = {}
    for name in NAMES:
        moved = constants.model_copy(update={name: getattr(constants, name) * 0.99})
        change = {row.source for row in rows if abs(log_error(row, transport, moved) - log_error(row, transport, constants)) > 1e-3}
        found[name] = len(change)
    return found


def timed(rows: Iterable[Measurement]) -> list[Measurement]:
    """Rows with bytes, a time and a transport."""
    return [row for row in rows if row.time and row.transport]


def left_out(rows: Iterable[Measurement]) -> dict[str, float]:
    """Predicted over measured time of each row with bytes, its source left out of the fit."""
    every = list(rows)
    ratios = {}
    for transport in transports().values():
        mine = usable(every, transport.id)
        for source in sorted({row.source for row in mine}):
            constants = fit(transport, [row for row in mine if row.source != source])
            for row in mine:
                if row.source == source and row.time:
                    ratios[row.id] = predicted_seconds(row, transport, constants) / row.time  # type: ignore[operator]
    return ratios


def within(ratios: Iterable[float], factor: float) -> float:
    """Share of ratios inside [1 / factor, factor]."""
    values = np.array(list(ratios))
    return float(np.mean((values <= factor) & (values >= 1 / factor))) if len(values) else float("nan")


def near(ratios: Iterable[float], tolerance: float = 0.25) -> float:
    """Share of ratios within a tolerance of 1."""
    values = np.array(list(ratios))
    return float(np.mean(np.abs(values - 1) <= tolerance)) if len(values) else float("nan")


def reason(row: Measurement, ratio: float) -> str:
    """Why a prediction is off: as the data say, else by the term that rules it."""
    if row.miss:
        return row.miss
    transport = transports()[row.transport or ""]
    alone = {u.source for u in usable(measurements().values(), transport.id)} == {row.source}
    total = predicted_seconds(row, transport) or 1.0
    share = 0.0 if row.steady else transport.constants.latency / total
    words = "measured slower" if ratio < 1 else "measured faster"
    if alone:
        return f"{words}; no other source of this transport, so defaults"
    if share > 0.5:
        return f"{words}; latency rules, and libraries differ in it by more than this"
    if (row.messages or 0) > 1 and transport.constants.message_seconds * (row.messages or 0) > total / 3:
        return f"{words}; messages rule, and libraries differ in their cost by more than this"
    return f"{words}; bandwidth rules: this set-up reaches another share of nominal than the others"


def two_constants(rows: list[Measurement]) -> Constants:
    """Latency and achieved fraction alone, least squares of relative errors."""
    line = np.array([[1.0, row.ideal_seconds or 0.0] for row in rows])
    took = np.array([row.time or 0.0 for row in rows])
    latency, slope = np.linalg.lstsq(line / took[:, None], np.ones(len(rows)), rcond=None)[0]
    return Constants.model_construct(achieved=1 / slope, latency=float(latency), message_seconds=0.0, host_bandwidth=np.inf)


def table_of_nine() -> list[Measurement]:
    """Whole-request transfers of vLLM with Mooncake between two H800 nodes."""
    return [row for row in measurements().values() if row.series == "mooncake-vllm-h800"]


def nine_errors(fitted_on: set[int]) -> dict[int, float]:
    """Relative error by prompt length, two constants fitted on some lengths."""
    rows, transport = table_of_nine(), transports()["connector"]
    constants = two_constants([row for row in rows if row.tokens in fitted_on])
    return {row.tokens or 0: (predicted_seconds(row, transport, constants) or 0) / (row.time or 1) - 1 for row in rows}


def share_line(title: str, ratios: dict[str, float]) -> str:
    """One line of the table of errors."""
    return f"{title:34} {len(ratios):4} rows   within 25 %: {near(ratios.values()):5.1%}   within 2x: {within(ratios.values(), 2):5.1%}"


def report() -> dict[str, Constants]:
    """Print fits, errors and misses; returns the constants."""
    rows = measurements()
    fitted = {}
    print("transport         achieved    latency    message    host memory   rows  sources that bear on each")
    for transport in transports().values():
        mine = usable(rows.values(), transport.id)
        c = fitted[transport.id] = fit(transport, mine)
        marks = " ".join(str(n) for n in bearing(transport, mine, c).values())
        print(
            f"{transport.id:16} {c.achieved:9.3f} {c.latency * 1e6:8.1f} us {c.message_seconds * 1e6:7.2f} us "
            f"{c.host_bandwidth / 1e9:9.0f} GB/s {len(mine):6}  {marks}"
        )
    ratios = left_out(rows.values())
    print()
    print_shares(ratios, rows)
    print("\nmisses by more than 25 % with the source left out: predicted / measured, reason")
    for name, ratio in ratios.items():
        if abs(ratio - 1) > 0.25:
            print(f"  {'!' if within([ratio], 2) == 0 else ' '} {ratio:6.2f}  {name:48} {reason(rows[name], ratio)}")
    print_nine()
    print_ideal(rows.values())
    return fitted


def print_shares(ratios: dict[str, float], lookup: Mapping[str, Measurement]) -> None:
    """Shares within 25 % and 2x, all rows and those of each kind."""
    print(share_line("source left out, all", ratios))
    print(share_line("  as printed, nothing derived", {k: v for k, v in ratios.items() if not lookup[k].derived}))
    print(share_line("  kv_transfer", {k: v for k, v in ratios.items() if lookup[k].category == "kv_transfer"}))
    for transport in transports():
        print(share_line(f"  {transport}", {k: v for k, v in ratios.items() if lookup[k].transport == transport}))
    known = {row.id: (predicted_seconds(row, transports()[row.transport or ""]) or 0) / (row.time or 1) for row in timed(lookup.values())}
    print(share_line("constants of data/transports.toml", known))


def print_nine() -> None:
    """Two constants on the nine-row table."""
    three = nine_errors({128, 1024, 8192})
    print("\nvLLM + Mooncake, H800: two constants fitted on 128, 1,024 and 8,192 tokens")
    print("  " + "  ".join(f"{tokens}: {error:+.1%}" for tokens, error in three.items()))
    every = nine_errors(set(three))
    print(f"  worst of the other six {max(abs(e) for t, e in three.items() if t not in (128, 1024, 8192)):.1%};", end=" ")
    print(f"fitted on all nine, worst {max(map(abs, every.values())):.1%}")


def print_ideal(rows: Iterable[Measurement]) -> None:
    """Whether bytes over nominal bandwidth is below every measured time."""
    known = [row for row in rows if row.ideal_seconds and row.time]
    above = [row for row in known if row.ideal_seconds > row.time]  # type: ignore[operator]
    print(f"\nideal arithmetic is below {len(known) - len(above)} of {len(known)} measured times")
    for row in above:
        print(f"  {row.id}: {row.note}")


def write(fitted: dict[str, Constants]) -> None:
    """Replace constants and counts in data/transports.toml."""
    path = data_folder() / "transports.toml"
    text = path.read_text(encoding="utf-8")
    for name, c in fitted.items():
        transport = transports()[name]
        counts = bearing(transport, usable(measurements().values(), name), c)
        values = (
            f'constants = {{achieved = {c.achieved:.3f}, latency = "{c.latency * 1e6:.4g} us", '
            f'message_seconds = "{c.message_seconds * 1e6:.3g} us", host_bandwidth = "{c.host_bandwidth / 1e9:.3g} GB/s"}}'
        )
        marks = "fitted = {" + ", ".join(f"{key} = {n}" for key, n in counts.items()) + "}"
        text = re.sub(rf'(id = "{name}"\n(?:.*\n)*?)constants = .*\nfitted = .*\n', rf"\g<1>{values}\n{marks}\n", text)
    path.write_text(text, encoding="utf-8")


def predict(path: Path) -> None:
    """Print predicted over measured time for the rows of a table that have bytes and a time."""
    rows = {row.id: row for row in timed(read_table(path))}
    ratios = {name: (predicted_seconds(row, transports()[row.transport or ""]) or 0) / (row.time or 1) for name, row in rows.items()}
    for name, ratio in ratios.items():
        print(f"{ratio:6.2f}  {name:12} {rows[name].transport}")
    print(share_line("predicted", ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--predict", type=Path)
    arguments = parser.parse_args()
    if arguments.predict:
        predict(arguments.predict)
        return
    fitted = report()
    if arguments.write:
        write(fitted)


if __name__ == "__main__":
    main()
