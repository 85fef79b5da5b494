"""The README's table of published transfers against the model, made from the data.

python -m tests.readme_tables           prints it
python -m tests.readme_tables --write   puts it into README.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median

from kvmodel import registry
from tests.fit_transports import left_out, near, timed, within

README = Path(__file__).parents[1] / "README.md"
MARKED = re.compile(r"(?<=<!-- transports -->\n).*?(?=<!-- /transports -->)", re.DOTALL)


def transports_table() -> str:
    """A row a transport: how many rows, how many the model meets, and how far bytes over bandwidth is off."""
    rows = timed(registry.measurements().values())
    ratios, lookup = left_out(rows), {row.id: row for row in rows}
    lines = ["| how the bytes travelled | rows | within 25 % | within 2x | bytes ÷ bandwidth, median |", "|---|---|---|---|---|"]
    for transport in [*registry.transports().values(), None]:
        mine = {key: ratio for key, ratio in ratios.items() if transport is None or lookup[key].transport == transport.id}
        ideal = [lookup[key].time / lookup[key].ideal_seconds for key in mine if lookup[key].ideal_seconds]
        low = f"{median(ideal):.1f}x too fast" if ideal else "rate not stated"
        name = "**all**" if transport is None else transport.name
        lines.append(f"| {name} | {len(mine)} | {near(mine.values()):.0%} | {within(mine.values(), 2):.0%} | {low} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    table = transports_table()
    print(table)
    if "--write" in sys.argv:
        README.write_text(MARKED.sub(lambda _: table, README.read_text(encoding="utf-8")), encoding="utf-8")
