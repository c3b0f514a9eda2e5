import os
import subprocess
import sys

import anyio
import pytest
from sideband.ledger import Intent, Ledger, Outcome
from sideband.ops import Level, Origin
from sideband_store_sqlite import open_sqlite

# A host in its own process. It prints the id of each effect after the ledger has acknowledged the intent.
WRITER = """
import sys, anyio
from pathlib import Path
from sideband.ledger import Intent, Ledger, Outcome
from sideband_store_sqlite import open_sqlite

async def main(folder, count, rotate, leave_open):
    async with open_sqlite(Path(folder)) as store:
        async with Ledger(Path(folder) / "ledger", store, rotate_bytes=int(rotate), head_interval=0.005) as ledger:
            for n in range(int(count)):
                effect = ledger.new_effect_id()
                await ledger.intent(Intent(effect=effect, op="test.write", params={"n": n}), durable=True)
                print(effect, flush=True)
                if leave_open == "no":
                    await ledger.outcome(Outcome(effect=effect, op="test.write", status="done"))
            print("end", flush=True)
            if leave_open == "yes":
                sys.stdin.readline()

anyio.run(main, *sys.argv[1:])
"""


@pytest.fixture
def anyio_backend():
    """Use asyncio, unless a test is parametrized with both backends, because it concerns concurrency."""
    return "asyncio"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
async def store(tmp_path):
    async with open_sqlite(tmp_path) as store:
        yield store


@pytest.fixture
def write():
    """Return a function that records effects with intent and outcome, and returns their ids."""

    async def write(ledger: Ledger, count: int, *, op="http.get", status="done", durable=False, **fields):
        effects = []
        for number in range(count):
            effect = ledger.new_effect_id()
            origin = Origin(session="s", skill="demo", tool="harvest")
            params = {"url": f"https://example.org/{number}"}
            intent = {"op": op, "params": params, "origin": origin, "level": Level.MONITORED, **fields}
            await ledger.intent(Intent(effect=effect, **intent), durable=durable)
            await ledger.outcome(Outcome(effect=effect, op=op, status=status, ms=1.5))
            effects.append(effect)
        return effects

    return write


@pytest.fixture
def start_host(tmp_path):
    """Return a function that starts a host in its own process."""
    started = []

    def start(count, *, rotate=1 << 20, leave_open=False, limit=None):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(count), str(rotate), "yes" if leave_open else "no"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def ledger_bytes(tmp_path):
    """Return the files of a properly closed ledger with several segments, and the folder of its store."""

    async def make():
        async with open_sqlite(tmp_path / "original") as store:
            folder = tmp_path / "original" / "ledger"
            async with Ledger(folder, store, rotate_bytes=1500) as ledger:
                for number in range(6):
                    effect = ledger.new_effect_id()
                    await ledger.intent(Intent(effect=effect, op="http.get", params={"n": number}), durable=False)
                    await ledger.outcome(Outcome(effect=effect, op="http.get", status="done"))
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}

    return anyio.run(make), tmp_path / "original"
