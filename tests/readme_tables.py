"""The README's tables that are made: published transfers against the model, from the data, and settings of a hosted page.

python -m tests.readme_tables           prints it
python -m tests.readme_tables --write   puts it into README.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median

from app.hosting.settings import listed
from kvmodel import registry
from tests.fit_transports import left_out, near, within

README = Path(__file__).parents[1] / "README.md"
MARKED = re.compile(r"(?<=<!-- transports -->\n).*?(?=<!-- /transports -->)", re.DOTALL)
SETTINGS = re.compile(r"(?<=<!-- settings -->\n).*?(?=<!-- /settings -->)", re.DOTALL)


def transports_table() -> str:
    """A row a transport: how many rows, how many the model meets, and how far bytes over bandwidth is off."""
    lookup = registry.measurements()
    ratios = left_out(lookup.values())
    lines = ["| how the bytes travelled | rows | within 25 % | within 2x | bytes ÷ bandwidth, median |", "|---|---|---|---|---|"]
    for transport in [*registry.transports().values(), None]:
        mine = {key: ratio for key, ratio in ratios.items() if transport is None or lookup[key].transport == transport.id}
        ideal = [lookup[key].time / lookup[key].ideal_seconds for key in mine if lookup[key].ideal_seconds]
        low = f"{median(ideal):.1f}x too fast" if ideal else "rate not stated"
        name = "**all**" if transport is None else transport.name
        lines.append(f"| {name} | {len(mine)} | {near(mine.values()):.0%} | {within(mine.values(), 2):.0%} | {low} |")
    return "\n".join(lines) + "\n"


def settings_table() -> str:
    """A row for each environment variable of `kv-handoff serve`."""
    rows = [f"| `{name}` | {f'`{default}`' if default else '–'} | {what} |" for name, default, what in listed()]
    return "\n".join(["| variable | default | what it does |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    tables = {MARKED: transports_table(), SETTINGS: settings_table()}
    print(*tables.values(), sep="\n")
    if "--write" in sys.argv:
        text = README.read_text(encoding="utf-8")
        for marked, table in tables.items():
            text = marked.sub(lambda _, table=table: table, text)
        README.write_text(text, encoding="utf-8")
