"""Ops on files under load, on full disks, and with several hosts."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import pytest
import sideband_files.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.ops import OpTimeout
from sideband_confined_files import FileChanged
from sideband_files import FilesTooMany

pytestmark = pytest.mark.anyio

PLUGINS = [Plugin("op", "files", sideband_files.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
SETUP = """
import json, sys
from pathlib import Path

import anyio
import sideband_files.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_confined_files import FileError

PLUGINS = [Plugin("op", "files", sideband_files.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
"""


@pytest.fixture
async def host(tmp_path):
    settings = {"plugins": {"files": {"max_visited": 100_000}}}
    async with Host(home=tmp_path / "home", settings=settings, plugins=PLUGINS, autoload=False) as host:
        yield host


@pytest.fixture
def crowd():
    """Return a folder in memory with 100,000 files."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    first = folder / "000000"
    first.touch()
    for number in range(1, 100_000):
        (folder / f"{number:06}").hardlink_to(first)
    yield folder
    shutil.rmtree(folder)


async def test_large_folder_is_listed_in_pages_and_searched_within_limits(host, crowd):
    page = await host.op("files.list", {"path": str(crowd), "limit": 2, "after": "099990"})
    assert [one["name"] for one in page["entries"]] == ["099991", "099992"]
    assert len((await host.op("files.list", {"path": str(crowd)}))["entries"]) == 1_000
    found = await host.op("files.find", {"path": str(crowd), "pattern": "0000*"})
    assert len(found["entries"]) == 100
    (crowd / "one more").touch()
    with pytest.raises(FilesTooMany):
        await host.op("files.find", {"path": str(crowd), "pattern": "none"})


async def test_concurrent_writes_are_not_lost(host):
    async def write(number):
        await host.op("files.write", {"path": f"{number % 10}/{number}", "content": f"{number}"})
        await host.op("files.write", {"path": "all", "content": f"{number}\n", "append": True})

    async with anyio.create_task_group() as group:
        for number in range(120):
            group.start_soon(write, number)
    lines = (await host.op("files.read", {"path": "all"}))["content"].split()
    assert sorted(map(int, lines)) == list(range(120))
    found = await host.op("files.find", {"pattern": "*/*"})
    assert sorted(int(one["name"].split("/")[1]) for one in found["entries"]) == list(range(120))


async def test_one_of_many_conditional_writes_succeeds(host):
    first = await host.op("files.write", {"path": "x", "content": "first"})
    won = []

    async def write(number):
        try:
            params = {"path": "x", "content": f"{number}", "expected": first["sha256"]}
            won.append((await host.op("files.write", params))["sha256"])
        except FileChanged:
            pass

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(write, number)
    assert won == [(await host.op("files.read", {"path": "x"}))["sha256"]]


async def test_digest_of_a_large_file_stops_at_its_deadline(host):
    root = host.home / "files"
    root.mkdir()
    with (root / "x").open("wb") as file:
        file.truncate(1024**3)
    with pytest.raises(OpTimeout):
        await host.op("files.stat", {"path": "x", "digest": True}, deadline=0.05)


COUNTER = (
    SETUP
    + """
async def main():
    async with Host(home=Path(sys.argv[1]), plugins=PLUGINS, autoload=False) as host:
        target = sys.argv[2]
        for _ in range(15):
            while True:
                found = await host.op("files.read", {"path": target})
                content = str(int(found["content"]) + 1)
                params = {"path": target, "content": content, "expected": found["sha256"]}
                try:
                    await host.op("files.write", params)
                    break
                except FileError as error:
                    assert error.code == "file.changed", error

anyio.run(main)
"""
)


async def test_conditional_writes_of_several_hosts_are_not_lost(tmp_path):
    (tmp_path / "shared").mkdir()
    counter = tmp_path / "shared" / "counter"
    counter.write_text("0")
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(anyio.run_process, [sys.executable, "-c", COUNTER, tmp_path / f"{number}", counter])
    assert counter.read_text() == "45"


FILLER = (
    SETUP
    + """
async def main():
    root = Path(sys.argv[2])
    (root / "kept").write_text("old")
    errors = []
    async with Host(home=Path(sys.argv[1]), plugins=PLUGINS, autoload=False) as host:
        (root / "half").write_text("x" * 300_000)
        for op, params in (
            ("write", {"path": f"{root}/kept", "content": "x" * 600_000, "overwrite": True}),
            ("write", {"path": f"{root}/kept", "content": "x" * 600_000, "append": True}),
            ("write", {"path": f"{root}/new", "content": "x" * 600_000}),
            ("copy", {"path": f"{root}/half", "target": f"{root}/new"}),
            ("copy", {"path": f"{root}/half", "target": f"{root}/kept", "overwrite": True}),
        ):
            try:
                await host.op(f"files.{op}", params)
            except FileError as error:
                errors.append([error.code, error.nothing_happened])
        await host.op("files.write", {"path": f"{root}/kept", "content": "new", "overwrite": True})
    print(json.dumps([errors, sorted(one.name for one in root.iterdir()), (root / "kept").read_text()]))

anyio.run(main)
"""
)


async def test_full_disk_changes_no_file(tmp_path):
    (tmp_path / "small").mkdir()
    mount = 'mount -t tmpfs -o size=512k none "$1" && exec "$2" -c "$3" "$4" "$1"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    done = await anyio.run_process(
        [*words, tmp_path / "small", sys.executable, FILLER, tmp_path / "home"], check=False, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    errors, names, kept = json.loads(done.stdout)
    assert errors == [["file.failed", True]] * 5
    assert (names, kept) == (["half", "kept"], "new")
