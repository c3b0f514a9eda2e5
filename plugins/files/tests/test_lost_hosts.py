"""Hosts that are killed during an op: the next host determines the outcome from the file system."""

import random
import subprocess
import sys
import time

import pytest
from sideband.ops import EffectUnknown

pytestmark = pytest.mark.anyio

# Each host is killed before or after a system call that its op makes once.
CRASHING = """
import os, signal, sys
from pathlib import Path

import anyio
import sideband_files.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

PLUGINS = [Plugin("op", "files", sideband_files.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
NAMES = {"new", "x", "y", "z", "empty"}


def kill_at(call, moment):
    change = getattr(os, call)

    def change_and_kill(*args, **options):
        opens_for_writing = call == "open" and args[0] == "." and args[1] & os.O_WRONLY
        if not opens_for_writing and NAMES.isdisjoint(map(str, args[:2])):
            return change(*args, **options)
        if moment == "after":
            change(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(os, call, change_and_kill)


async def run(home, op, params, call, moment):
    async with Host(home=home, plugins=PLUGINS, autoload=False) as host:
        root = home / "files"
        root.mkdir()
        for name in ("x", "y"):
            (root / name).write_text(name)
        (root / "empty").mkdir()
        kill_at(call, moment)
        await host.op(op, params, key="k")


for number, case in enumerate(CASES):
    child = os.fork()
    if child == 0:
        try:
            anyio.run(run, Path(sys.argv[1]) / str(number), *case)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, case
"""

REPLACED = {"path": "x", "content": "1", "overwrite": True}
ONCE = [
    ("files.write", {"path": "new", "content": "1"}, "link"),
    ("files.write", REPLACED, "replace"),
    ("files.copy", {"path": "x", "target": "y", "overwrite": True}, "replace"),
    ("files.delete", {"path": "x"}, "unlink"),
    ("files.delete", {"path": "empty/"}, "rmdir"),
    ("files.make_folder", {"path": "new"}, "mkdir"),
    ("files.move", {"path": "x", "target": "y", "overwrite": True}, "replace"),
]
HALF = ("files.move", {"path": "x", "target": "z"}, "link", "after")
EARLY = ("files.write", REPLACED, "open", "before")
AGAIN = ("files.write", {**REPLACED, "content": "2"}, "replace", "after")
CASES = [*((*one, moment) for one in ONCE for moment in ("before", "after")), HALF, EARLY, AGAIN]


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """The homes of the killed hosts."""
    folder = tmp_path_factory.mktemp("homes")
    subprocess.run([sys.executable, "-c", f"CASES = {CASES!r}\n{CRASHING}", folder], check=True)
    return folder


@pytest.fixture
def next_host(homes, open_host):
    """Return a function that opens the next host of a killed one."""

    def open_next(case):
        return open_host(homes / str(CASES.index(case)))

    return open_next


@pytest.mark.parametrize(("moment", "status"), [("before", "failed"), ("after", "done")])
@pytest.mark.parametrize("case", ONCE, ids=lambda case: f"{case[0]}-{case[2]}")
async def test_outcome_of_an_op_is_recovered(next_host, case, moment, status):
    name, params, _ = case
    async with next_host((*case, moment)) as host:
        assert [(one.op, one.status) for one in host.recovered] == [(name, status)]
        if status == "done":
            first = await host.op(name, params, key="k")
            assert first["path"] == params["target" if name == "files.copy" else "path"].rstrip("/")


async def test_outcome_is_unknown_if_the_file_was_changed_since(next_host, homes):
    (homes / str(CASES.index(AGAIN)) / "files" / "x").write_text("changed")
    async with next_host(AGAIN) as host:
        assert [one.status for one in host.recovered] == ["unknown"]
        with pytest.raises(EffectUnknown):
            await host.op(AGAIN[0], AGAIN[1], key="k")


async def test_outcome_of_a_half_completed_move_is_unknown(next_host):
    async with next_host(HALF) as host:
        assert [one.status for one in host.recovered] == ["unknown"]
        assert (host.home / "files/x").read_text() == (host.home / "files/z").read_text() == "x"


async def test_op_killed_before_its_note_has_not_happened(next_host):
    async with next_host(EARLY) as host:
        assert [one.status for one in host.recovered] == ["failed"]


# Replaces a file repeatedly, with a separate effect each time.
WRITING = """
import sys
from pathlib import Path

import anyio
import sideband_files.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin


async def main():
    plugins = [Plugin("op", "files", sideband_files.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
    async with Host(home=Path(sys.argv[1]), plugins=plugins, autoload=False) as host:
        for number in range(10_000):
            content = f"{number}" * 10_000
            await host.op("files.write", {"path": "x", "content": content, "overwrite": True}, key=f"k{number}")
            print(number, flush=True)


anyio.run(main)
"""


async def test_record_and_file_agree_after_a_kill_at_any_moment(tmp_path, open_host, start):
    for seed in range(2):
        last = start(WRITING, random.Random(seed).random() * 0.2)
        async with open_host() as host:
            text = (tmp_path / "home/files/x").read_text()
            number = int(text[: len(text) // 10_000])
            assert text == f"{number}" * 10_000
            assert all(one.status in ("done", "failed") for one in host.recovered)
            assert number in (last, last + 1)
            known = await host.op("files.write", {"path": "x", "content": text, "overwrite": True}, key=f"k{number}")
            assert known["size"] == len(text)
        (tmp_path / "home").rename(tmp_path / f"home{seed}")


@pytest.fixture
def start(tmp_path):
    """Return a function that kills a writing host after some seconds, and returns the last number that it printed."""

    def run(code, seconds):
        with subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "home"], stdout=subprocess.PIPE, text=True
        ) as process:
            first = process.stdout.readline()
            time.sleep(seconds)  # a random moment
            process.kill()
            lines = [first, *process.stdout]
        return int([line for line in lines if line.endswith("\n")][-1])

    return run
