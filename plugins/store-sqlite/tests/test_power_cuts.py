"""A power cut loses writes that were not synced, any of them and in any order: durable ones remain, and no gap appears.

All writes and syncs of a real run are recorded with a preloaded library (as dm-log-writes does for a block device). For
a moment of the run, a disk is built from what was synced and a random part of the rest.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from attrs import field, frozen
from sideband_store_sqlite import open_sqlite

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("cc") is None, reason="compiles a library that is preloaded"
    ),
]

# Each process appends numbered records. It marks each that is complete, and each number up to which all are on disk.
RUN = """
import os, sys, anyio
from pathlib import Path
from sideband_store_sqlite import open_sqlite

async def main(folder, name, count):
    marks = os.open(Path(folder, f"marks-{name}"), os.O_WRONLY | os.O_CREAT)
    async with open_sqlite(Path(folder)) as store:
        for n in range(int(count)):
            durable = n % 41 == 40
            if n % 3 == 0:
                async with store.transaction(durable=durable) as transaction:
                    await transaction.append(name, [{"n": n, "text": "x" * (n % 50) * 40}])
                    await transaction.put(f"{name}/last", {"n": n})
            else:
                await store.append(name, [{"n": n, "text": "x" * (n % 50) * 40}], durable=durable)
            if n % 97 == 96:
                await store.sync()
                durable = True
            if durable:
                os.write(marks, b"%d\\n" % n)

anyio.run(main, *sys.argv[1:])
"""


@frozen
class Entry:
    kind: str
    process: int
    thread: int
    name: str
    offset: int
    data: bytes = field(repr=False)


def entries_of(record):
    entries, at, data = [], 0, record.read_bytes()
    while at < len(data):
        end = data.index(b"\n", at)
        kind, process, thread, name, offset, length = data[at:end].decode().split(" ")
        at = end + 1 + int(length)
        entries.append(Entry(kind, int(process), int(thread), name, int(offset), data[end + 1 : at]))
    return entries


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    library = tmp_path_factory.mktemp("library") / "disk_recorder.so"
    source = Path(__file__).with_name("disk_recorder.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-pthread", "-o", library, source], check=True)
    return library


@pytest.fixture(scope="module")
def record(tmp_path_factory, library):
    """Return a function that runs programs on one folder, and returns what they wrote and synced."""

    def run(*names, count):
        base = tmp_path_factory.mktemp("run").resolve()
        folder = base / "store"
        folder.mkdir()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LD_PRELOAD": str(library),
            "RECORD": str(base / "record"),
            "RECORDED_FOLDER": str(folder),
        }
        programs = [
            subprocess.Popen([sys.executable, "-c", RUN, folder, name, str(count)], env=environment) for name in names
        ]
        assert [program.wait(60) for program in programs] == [0] * len(names)
        return entries_of(base / "record")

    return run


@pytest.fixture(scope="module")
def alone(record):
    return record("one", count=800)


@pytest.fixture(scope="module")
def together(record):
    return record("one", "two", count=400)


def write_after(disk, entries, choose):
    """Write the disk that a power cut after ``entries`` leaves, where ``choose`` decides about unsynced writes."""
    written = defaultdict(list)
    synced = defaultdict(int)
    began = {}
    deleted = []
    for entry in entries:
        if entry.kind == "B":
            began[entry.thread] = len(deleted if entry.name == "." else written[entry.name])
        elif entry.kind == "S":
            synced[entry.name] = max(synced[entry.name], began.pop(entry.thread))
        else:
            written[entry.name].append(entry)
            deleted += [entry] if entry.kind == "U" else []
    lasting = {id(entry) for entry in deleted[: synced["."]]}
    for name, changes in written.items():
        if name.startswith("marks") or name.endswith("-shm"):
            continue
        kept = [
            change
            for n, change in enumerate(changes)
            if (id(change) in lasting if change.kind == "U" else n < synced[name]) or choose()
        ]
        content, exists = bytearray(), True
        for change in kept:
            exists = change.kind != "U"
            end = change.offset + len(change.data)
            content.extend(bytes(max(0, end - len(content))))
            if change.kind == "W":
                content[change.offset : end] = change.data
            else:
                del content[change.offset :]
        if exists:
            (disk / name).write_bytes(content)
    return {
        name.removeprefix("marks-"): int(b"".join(change.data for change in changes).split()[-1])
        for name, changes in written.items()
        if name.startswith("marks")
    }


async def check(disk, durable, names):
    if (disk / "store.sqlite").exists():
        with closing(sqlite3.connect(disk / "store.sqlite")) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    async with open_sqlite(disk) as store:
        for name in names:
            numbers = [record.value["n"] for record in await store.read(name)]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) > durable.get(name, -1)
            last = await store.get(f"{name}/last")
            # the document was written in one transaction with each third record
            assert (last.value["n"] if last else None) == (max(numbers[::3]) if numbers else None)


def moments(entries, count, chance):
    """Return moments of a run: random ones, and those around the checkpoints, at which the database file is written."""
    changes = [n for n, entry in enumerate(entries) if entry.name == "store.sqlite" and entry.kind in "WTS"]
    ends = [n for n, entry in enumerate(entries) if entry.kind in "US" or entry.name.startswith("marks")]
    return sorted(
        {*chance.sample(range(len(entries)), count), *chance.sample(changes, count), *chance.sample(ends, count)}
    )


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.97])
async def test_durable_writes_survive_a_power_cut_and_no_write_is_lost_before_another(alone, tmp_path, kept):
    chance = random.Random(kept)
    for moment in moments(alone, 8, chance):
        disk = tmp_path / str(moment)
        disk.mkdir()
        durable = write_after(disk, alone[: moment + 1], lambda: chance.random() < kept)
        await check(disk, durable, ["one"])


@pytest.mark.parametrize("kept", [0.0, 0.5])
async def test_durable_writes_of_two_processes_survive_a_power_cut(together, tmp_path, kept):
    chance = random.Random(kept)
    for moment in moments(together, 8, chance):
        disk = tmp_path / str(moment)
        disk.mkdir()
        durable = write_after(disk, together[: moment + 1], lambda: chance.random() < kept)
        await check(disk, durable, ["one", "two"])


def test_no_sync_runs_on_the_event_loop(alone):
    assert [entry for entry in alone if entry.kind == "B" and entry.thread == entry.process] == []


def test_run_contains_checkpoints_and_reuses_the_log(alone):
    # otherwise the other tests would not examine them
    log = [entry for entry in alone if entry.name == "store.sqlite-wal" and entry.kind in "WU"]
    assert any(before.offset > after.offset == 0 and after.kind == "W" for before, after in pairwise(log))
    assert log[-1].kind == "U"
