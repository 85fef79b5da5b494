"""Readers on the real page: websocket sessions that each commit a prompt length every 4 s. Prints; asserts nothing.

    python tests/load_page.py                       a page of its own: more and more readers, then what one beyond the cap sees
    python tests/load_page.py --sessions 100 --minutes 10      so many readers for so long, to see whether memory grows
    python tests/load_page.py --address http://…    a page that runs already

A commit takes from its message until all that its run draws is received and read, and it has to draw the value that was set.
The readers run on the same machine and take their share of it: how busy they and the page are is printed beside the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import time
import urllib.error
import urllib.request
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Slider_pb2 import Slider
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.page_server import page_process

PAUSE = 4.0
"""Seconds between two commits of one reader."""
GOAL_MS = 500
STEPS = (10, 25, 50, 75, 100, 125, 150)
STREAM = "/_stcore/stream"
SLIDER = "-prompt_tokens"


@dataclass
class Reader:
    """One session: its socket, the slider it moves, what it keeps, and how long each commit took, in milliseconds.

    A commit takes from its message until the run has ended, with all that it draws received and read.
    """

    line: ClientConnection
    link: str = ""
    page: str = ""
    slider: str = ""
    options: list[str] = field(default_factory=list)
    kept: list[set[str]] = field(default_factory=lambda: [set(), set()])
    last: list[str] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    received: int = 0

    async def run(self, *, value: str = "") -> None:
        """Commit a value, or open the page without one, and wait until its run has ended.

        Raises RuntimeError where it did not end well, or drew another value.
        """
        context = {"url": "http://127.0.0.1/", "timezone": "UTC", "locale": "en-US"}
        # As a browser does, name the long messages of the last runs, which are then not sent again.
        rerun = {"page_script_hash": self.page, "context_info": context, "query_string": self.link}
        rerun["cached_message_hashes"] = sorted(self.kept[0] | self.kept[1])
        if value:
            rerun["widget_states"] = {"widgets": [{"id": self.slider, "string_array_value": {"data": [value]}}]}
        self.kept = [self.kept[1], set()]
        await self.line.send(BackMsg(rerun_script=rerun).SerializeToString())
        stands = f'"value":"{value}"'.encode() if value else b""
        while True:
            raw = await self.line.recv()
            self.received += len(raw)
            told = ForwardMsg.FromString(raw)
            kind = told.WhichOneof("type")
            if told.metadata.cacheable or kind == "ref_hash":
                self.kept[1].add(told.ref_hash if kind == "ref_hash" else told.hash)
            if kind == "new_session":
                self.page = told.new_session.page_script_hash
            elif kind == "delta":
                stands = b"" if stands in raw else stands
                self._look(told.delta.new_element.slider)
            elif kind == "script_finished":
                if told.script_finished != ForwardMsg.FINISHED_SUCCESSFULLY or stands:
                    raise RuntimeError(f"the run ended with {told.script_finished}, and {value} was not drawn")
                return

    def _look(self, slider: Slider) -> None:
        if slider.id.endswith(SLIDER):
            self.slider, self.options = slider.id, list(slider.options) or self.options

    async def read(self, until: float) -> None:
        """Commit every PAUSE seconds until a time."""
        await asyncio.sleep(random.uniform(0, PAUSE))
        while time.monotonic() < until:
            began = time.monotonic()
            # What it had a moment ago would not be sent again.
            self.last = [*self.last[-1:], random.choice([option for option in self.options if option not in self.last])]
            await self.run(value=self.last[-1])
            self.took.append((time.monotonic() - began) * 1e3)
            await asyncio.sleep(max(0.0, PAUSE - (time.monotonic() - began)))


def memory(pid: int) -> float:
    """Megabytes that a process holds; NaN where that cannot be seen."""
    try:
        line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    except (OSError, StopIteration):
        return float("nan")
    return int(line.split()[1]) / 1024


def processor(pid: int) -> float:
    """Seconds of processor time that a process has taken; NaN where that cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(values: list[float], part: float) -> float:
    """A percentile; NaN of none."""
    return sorted(values)[min(len(values) - 1, round(part * (len(values) - 1)))] if values else float("nan")


async def open_readers(address: str, readers: list[Reader], count: int, stack: AsyncExitStack) -> None:
    """Open sessions until there are `count`, each with its first run done."""
    while len(readers) < count:
        url = address.replace("http", "ws", 1) + STREAM
        line = await stack.enter_async_context(connect(url, subprotocols=["streamlit"], max_size=None, max_queue=None))
        readers.append(Reader(line))
        await readers[-1].run()


async def held(readers: list[Reader], seconds: float, pid: int) -> tuple[float, float]:
    """Let all readers read for a while; prints, and returns the 95th percentile in milliseconds and the page's memory in megabytes."""
    for reader in readers:
        reader.took.clear()
        reader.received = 0
    until, page, own = time.monotonic() + seconds, processor(pid), processor(os.getpid())
    began = time.monotonic()
    await asyncio.gather(*(reader.read(until) for reader in readers))
    lasted = time.monotonic() - began
    took = [ms for reader in readers for ms in reader.took]
    p95, size = share(took, 0.95), memory(pid)
    page, own = processor(pid) - page, processor(os.getpid()) - own
    each = sum(reader.received for reader in readers) / 1e3 / max(1, len(took))
    print(
        f"  {len(readers):4} readers: p50 {share(took, 0.5):6.0f} ms, p95 {p95:6.0f} ms, {len(took) / lasted:5.1f} commits a second, "
        f"each {page * 1e3 / max(1, len(took)):4.0f} ms of processor and {each:4.0f} kB, "
        f"{size:6.0f} MB; busy: page {page / lasted:4.0%}, readers {own / lasted:4.0%}, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return p95, size


async def beyond(address: str, path: str = "/?link=ethernet-25") -> None:
    """Print what a reader sees beyond the cap."""
    try:
        status = urllib.request.urlopen(address + path).status
        print(f"  one more reader: {path} is answered with {status}, there is room")
        return
    except urllib.error.HTTPError as full:
        said = re.sub(r"<(style|title)>.*?</\1>|<[^>]*>", " ", full.read().decode())
        print(f"  one more reader: {path} is answered with {full.code}, again in {full.headers['retry-after']} s: {' '.join(said.split())}")
    async with connect(address.replace("http", "ws", 1) + STREAM, subprotocols=["streamlit"]) as line:
        try:
            await line.recv()
        except ConnectionClosed as closed:
            code, why = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (1006, "")
            print(f"  one more session is closed with {code}: {why}")


async def steady(pid: int, readers: list[Reader], minutes: float) -> None:
    """Hold readers for some minutes, and print how the page's memory went from the first on."""
    sizes = [(await held(readers, 60 * min(1.0, minutes), pid))[1] for _ in range(max(1, round(minutes)))]
    growth = (sizes[-1] - sizes[0]) / max(1, len(sizes) - 1)
    print(f"  memory: {sizes[0]:.0f} MB after the first minute, {sizes[-1]:.0f} MB after the last, {growth:+.1f} MB a minute")


async def drive(address: str, pid: int, asked: argparse.Namespace) -> None:
    """Open and hold readers as asked."""
    readers: list[Reader] = []
    async with AsyncExitStack() as stack:
        if asked.sessions:
            await open_readers(address, readers, asked.sessions, stack)
            await steady(pid, readers, asked.minutes)
        else:
            knee = 0
            for count in (step for step in STEPS if step <= asked.cap):
                await open_readers(address, readers, count, stack)
                p95, _ = await held(readers, asked.seconds, pid)
                knee = count if p95 <= GOAL_MS else knee
                if p95 > 8 * GOAL_MS:
                    break
            print(f"  p95 stays within {GOAL_MS} ms up to {knee} readers of {PAUSE:.0f} s a commit")
            await open_readers(address, readers, asked.cap, stack)
        await beyond(address)


def main() -> None:
    """Read the command line and drive a page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--address", default="", help="a page that runs already")
    parser.add_argument("--sessions", type=int, default=0, help="readers to hold; without it their number grows")
    parser.add_argument("--minutes", type=float, default=1, help="how long they are held")
    parser.add_argument("--seconds", type=float, default=20, help="how long each step of growth lasts")
    parser.add_argument("--cap", type=int, default=100, help="cap of a page of its own")
    asked = parser.parse_args()
    if asked.address:
        asyncio.run(drive(asked.address, 0, asked))
        return
    with page_process(KV_HANDOFF_MAX_SESSIONS=str(asked.cap), KV_HANDOFF_LOG_LEVEL="warning", KV_HANDOFF_PREPARE="1") as (address, pid):
        asyncio.run(drive(address, pid, asked))


if __name__ == "__main__":
    main()
