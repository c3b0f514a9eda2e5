"""Measures writing to the ledger, compared with the same lines in a minimal hash chain with group commit.

The floor uses only the standard library, a single process and a single file, without locks, recovery or segments.

Run: ``python -m benchmarks.ledger [FOLDER]``, with a folder on the disk to measure. Prints one line of JSON per
backend. Bounds: a line of a SAFE or MONITORED effect takes less than 30 µs; durable lines reach 70 % of the floor's
rate.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio
from anyio import to_thread
from sideband.ledger import Intent, Ledger, Outcome, query, verify
from sideband.ops import Level, Origin
from sideband.store import Document

from ._rows import Row, ratio_of, report

Recorder = Callable[[], Awaitable[None]]

LINES = 4_000
ROUNDS = 7
WAITING = (1, 64, 1_000)
ORIGIN = Origin(session="s1", run="r1", step="1", skill="demo", tool="harvest")
INTENT = {
    "op": "http.get",
    "params": {"url": "https://api.github.com/repos/pytest-dev/pluggy"},
    "grant": ("http:host=api.github.com",),
    "origin": ORIGIN,
    "level": Level.MONITORED,
}


class OneDocument:
    """A minimal store for the head of the ledger."""

    def __init__(self) -> None:
        self.document: Document | None = None

    async def get(self, _key: str) -> Document | None:
        return self.document

    async def put(self, _key: str, value: dict[str, Any], **_: int) -> int:
        self.document = Document(value, 1 + (self.document.version if self.document else 0))
        return self.document.version

    async def sync(self) -> None:
        """Do nothing: the ledger's file is what is measured."""

    def unsynced(self) -> None:
        """Do nothing."""


class Floor:
    """A minimal group commit: one write per line, one sync for all waiting tasks."""

    def __init__(self, path: Path, line: bytes) -> None:
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.fields = json.loads(line)
        self.hash = self.fields.pop("hash")
        self.written = self.synced = 0
        self.round: anyio.Event | None = None

    async def write(self) -> None:
        body = json.dumps({**self.fields, "prev": self.hash}, sort_keys=True).encode()
        self.hash = sha256(self.hash.encode() + body).hexdigest()
        os.write(self.descriptor, b'{"hash":"' + self.hash.encode() + b'",' + body[1:] + b"\n")
        self.written += 1

    async def write_durably(self) -> None:
        await self.write()
        mine = self.written
        while self.synced < mine:
            if self.round is not None:
                await self.round.wait()
                continue
            self.round, covers = anyio.Event(), self.written
            await to_thread.run_sync(os.fdatasync, self.descriptor)
            self.synced, ended, self.round = covers, self.round, None
            ended.set()


async def microseconds(record: Recorder, waiting: int, lines: int) -> float:
    async def several() -> None:
        for _ in range(lines // waiting):
            await record()

    started = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(waiting):
            tasks.start_soon(several)
    return (perf_counter() - started) / lines * 1e6


@asynccontextmanager
async def recorders(folder: Path) -> AsyncIterator[tuple[Floor, Recorder, Recorder]]:
    async with Ledger(folder / "ledger", OneDocument()) as ledger:

        async def pair() -> None:
            effect = ledger.new_effect_id()
            await ledger.intent(Intent(effect=effect, **INTENT), durable=False)
            await ledger.outcome(Outcome(effect=effect, op="http.get", status="done", ms=12.5, bytes=4711))

        async def durable() -> None:
            await ledger.intent(Intent(effect=ledger.new_effect_id(), **INTENT), durable=True)

        await pair()
        line = (folder / "ledger" / "00000001.jsonl").read_bytes().splitlines(keepends=True)[1]
        floor = Floor(folder / "floor", line)
        yield floor, pair, durable


async def measure(folder: Path) -> dict[str, float]:
    rounds: dict[str, list[float]] = {}
    async with recorders(folder) as (floor, pair, durable):
        cases = {
            "written_floor": (floor.write, 1, LINES, 1),
            "written": (pair, 1, LINES, 2),
            **{
                f"durable_{waiting}{suffix}": (record, waiting, max(waiting * 10, 300), 1)
                for waiting in WAITING
                for suffix, record in (("_floor", floor.write_durably), ("", durable))
            },
        }
        for _ in range(ROUNDS):  # interleaved, so that other load affects all of them
            for name, (record, waiting, lines, each) in cases.items():
                rounds.setdefault(name, []).append(await microseconds(record, waiting, lines) / each)
    found = {f"{name}_us": round(median(times), 2) for name, times in rounds.items()}
    for waiting in WAITING:
        found[f"durable_{waiting}_of_floor"] = round(
            ratio_of(rounds[f"durable_{waiting}_floor"], rounds[f"durable_{waiting}"]), 2
        )
    return found | await measure_reading(folder / "ledger")


async def measure_reading(folder: Path) -> dict[str, float]:
    started = perf_counter()
    lines = (await verify(folder, OneDocument())).entries
    verified = perf_counter()
    await query(folder, limit=1)
    indexed = perf_counter()
    await query(folder, op="http", limit=20)
    return {
        "verify_us_per_line": round((verified - started) / lines * 1e6, 2),
        "index_us_per_line": round((indexed - verified) / lines * 1e6, 2),
        "query_ms": round((perf_counter() - indexed) * 1e3, 2),
        "lines": lines,
    }


def main() -> None:
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for backend in ("asyncio", "trio"):
            Path(folder, backend).mkdir()
            found = anyio.run(measure, Path(folder, backend), backend=backend)
            rows = [Row(f"a ledger line, {backend}", found["written_us"], "µs", found["written_floor_us"], bound=30,
                        is_absolute=True)]  # fmt: skip
            rows += [
                Row(f"durable ledger lines, {waiting:,} waiting, {backend}", 1e6 / found[f"durable_{waiting}_us"],
                    "lines/s", 1e6 / found[f"durable_{waiting}_floor_us"], bound=0.7,
                    ratio=found[f"durable_{waiting}_of_floor"])
                for waiting in WAITING[1:]
            ]  # fmt: skip
            report(rows, backend=backend, **found)


if __name__ == "__main__":
    main()
