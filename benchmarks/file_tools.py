"""Measures reading and searching in a tree of 100,000 files and in a file of 1 GB, compared with ripgrep and sed.

Searches run the op `files.search` (the tool `grep`), which uses ripgrep in large files, and once without it. Ripgrep
runs alone, and as a program in isolation (`shell.run`), with its JSON read by the host. Reads run the op `files.lines`
(the tool `read`). A first result is a match that is streamed. Memory is what the process needs at most beyond what it
needed before.

Run: ``python -m benchmarks.file_tools``. Needs 1.5 GB in the folder for temporary files, which it deletes. Prints one
line of JSON. The bounds are one second for the first results, 64 MB, and three times the processor time of ripgrep.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import anyio
from attrs import define, field
from sideband import Host
from sideband.hooks import ToolProgress

from ._peers import PYTHON
from ._rows import Row, report

FOLDERS = 1_000
FILES_PER_FOLDER = 100
LINE = "The quick brown fox jumps over the lazy dog, and then some more.\n"
LINES_OF_GIGABYTE = 10**9 // len(LINE)
RARE = "needle [0-9]+"
SECONDS, MEGABYTES, TIMES = 1.0, 64.0, 3.0
ROUNDS = 3
_MEBIBYTE = 1 << 20


def make_tree(tree: Path) -> None:
    """Make the files: one in a thousand contains the pattern."""
    text = LINE * 16
    for number in range(FOLDERS):
        folder = tree / f"d{number:04}"
        folder.mkdir(parents=True)
        for file in range(FILES_PER_FOLDER):
            found = f"needle {number}\n" if file == 50 and number % 10 == 0 else ""
            (folder / f"f{file:03}.txt").write_text(text + found)


def make_gigabyte(path: Path) -> None:
    """Make the file: the pattern is near its beginning and at its end."""
    block = LINE * 10_000
    with path.open("w") as stream:
        stream.write("needle 1\n")
        for _ in range(LINES_OF_GIGABYTE // 10_000):
            stream.write(block)
        stream.write("needle 2\n")


@define
class Measured:
    """The figures of one operation, by round: its duration, its processor time, and its memory."""

    seconds: list[float] = field(factory=list)
    processor: list[float] = field(factory=list)
    megabytes: list[float] = field(factory=list)


def status(name: str) -> int:
    """Return a size of this process in kibibytes, such as `VmHWM`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def reset_peak() -> int:
    """Reset the peak memory of this process, and return its memory."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def processor_time() -> float:
    """Return the processor time of this process and of the programs that it has waited for."""
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system


async def measured(call: Callable[[], Awaitable[float | None]], into: Measured) -> None:
    """Add the duration of one call in this process, unless it returns another one, and its peak memory."""
    before = reset_peak()
    started, used = perf_counter(), processor_time()
    own = await call()
    into.seconds.append(perf_counter() - started if own is None else own)
    into.processor.append(processor_time() - used)
    into.megabytes.append((status("VmHWM") - before) * 1024 / 1e6)


def peer(command: list[str], into: Measured, *, first: bool) -> None:
    """Add the duration of a program, until its first output or until its end."""
    started, used = perf_counter(), processor_time()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if first:
            process.stdout.readline()
            into.seconds.append(perf_counter() - started)
            process.kill()
        process.stdout.read()
    if not first:
        into.seconds.append(perf_counter() - started)
    into.processor.append(processor_time() - used)


class Operations:
    """The operations of a host, and of one that does not use ripgrep."""

    def __init__(self, host: Host, without: Host, ripgrep: str | None) -> None:
        self.host, self.without, self.ripgrep = host, without, ripgrep

    async def search(self, folder: Path, below: str = "", *, first: bool = False, own: bool = False) -> float | None:
        """Search everything, and return the duration until the first match was streamed, if that is requested."""
        params = {"path": str(folder), "below": below, "pattern": RARE, "limit": 2_000}
        found: list[float] = []
        started = perf_counter()

        def take(event: ToolProgress) -> None:
            if event.text and not found:
                found.append(perf_counter() - started)

        grants = [f"files:path={folder}/*"]
        host = self.without if own else self.host
        await host.op("files.search", params, grants=grants, on_progress=take if first else None)
        return found[0] if first else None

    async def isolated(self, folder: Path, below: str = ".") -> None:
        """Search with ripgrep in isolation, and read its results."""
        params = {
            "binary": self.ripgrep,
            "args": ["--json", "--sort", "path", "-e", RARE, below],
            "cwd": str(folder),
            "read": [str(folder)],
            "timeout": 300,
        }
        ran = await self.host.op("shell.run", params, grants=["shell:binary=*,runs=any,place=*"])
        found = [json.loads(line) for line in ran["stdout"].splitlines()]
        assert [one for one in found if one["type"] == "match"]

    async def read(self, path: Path, first: int) -> None:
        """Read a thousand lines."""
        params = {"path": str(path), "first": first, "count": 1_000}
        await self.host.op("files.lines", params, grants=[f"files:path={path.parent}/*"])


def found_ripgrep() -> str | None:
    """Return the path of ripgrep: the installed one, or that of the peers."""
    beside = Path(PYTHON).with_name("rg") if PYTHON else None
    found = shutil.which("rg") or (str(beside) if beside and beside.exists() else None)
    return os.path.realpath(found) if found else None


def settings(ripgrep: str) -> dict[str, Any]:
    """Return the settings of a host."""
    return {"plugins": {"files": {"max_visited": 1_000_000, "search_seconds": 300, "ripgrep": ripgrep}}}


async def measure(tree: Path, big: Path, ripgrep: str | None) -> dict[str, tuple[Measured, Measured, Measured]]:
    """Return the figures of each operation: ours, those of the peer, and those of ripgrep in isolation."""
    last = LINES_OF_GIGABYTE // 10_000 * 10_000 - 500
    figures: dict[str, tuple[Measured, Measured, Measured]] = {}
    with tempfile.TemporaryDirectory() as home:
        homes = Path(home, "with"), Path(home, "without")
        async with (
            Host(home=homes[0], settings=settings(ripgrep or "never")) as host,
            Host(home=homes[1], settings=settings("never")) as without,
        ):
            ops = Operations(host, without, ripgrep)
            lines = ["sed", "-n"]
            cases: dict[str, tuple[Callable[[], Awaitable[float | None]], list[str], Any, bool]] = {
                "grep in 100,000 files, first result": (
                    lambda: ops.search(tree, first=True), ["-e", RARE, str(tree)], None, True),
                "grep in 100,000 files": (
                    lambda: ops.search(tree), ["-e", RARE, str(tree)], lambda: ops.isolated(tree), False),
                "grep in 1 GB, first result": (
                    lambda: ops.search(big.parent, big.name, first=True), ["-e", RARE, str(big)], None, True),
                "grep in 1 GB": (
                    lambda: ops.search(big.parent, big.name), ["-e", RARE, str(big)],
                    lambda: ops.isolated(big.parent, big.name), False),
                "grep in 1 GB, without ripgrep": (
                    lambda: ops.search(big.parent, big.name, own=True), ["-e", RARE, str(big)], None, False),
                "read one of 100,000 files": (
                    lambda: ops.read(tree / "d0500" / "f050.txt", 1),
                    [*lines, "1,1000p;1000q", str(tree / "d0500" / "f050.txt")], None, False),
                "read the first lines of 1 GB": (
                    lambda: ops.read(big, 1), [*lines, "1,1000p;1000q", str(big)], None, False),
                "read the last lines of 1 GB": (
                    lambda: ops.read(big, last), [*lines, f"{last},$p", str(big)], None, False),
            }  # fmt: skip
            await ops.search(tree, "d0000")  # the imports of the first search
            for name, (ours, arguments, isolated, first) in cases.items():
                figures[name] = Measured(), Measured(), Measured()
                is_grep = name.startswith("grep")
                command = [ripgrep, "--line-buffered", *arguments] if is_grep and ripgrep else arguments
                for _ in range(ROUNDS):
                    await measured(ours, figures[name][0])
                    if ripgrep or not is_grep:
                        peer(command, figures[name][1], first=first)
                    if isolated is not None and ripgrep:
                        await measured(isolated, figures[name][2])
    return figures


def main() -> None:
    ripgrep = found_ripgrep()
    with tempfile.TemporaryDirectory() as folder:
        tree, big = Path(os.path.realpath(folder)) / "tree", Path(os.path.realpath(folder)) / "big" / "big.txt"
        big.parent.mkdir()
        make_tree(tree)
        make_gigabyte(big)
        figures = anyio.run(measure, tree, big, ripgrep)
    rows = []
    details = {}
    for name, (ours, other, isolated) in figures.items():
        is_first = "first" in name or "one of" in name
        floor = median(other.seconds) if other.seconds else None
        note = "" if floor is not None else "ripgrep is not installed"
        own_bound = SECONDS if is_first else None
        rows += [
            Row(name, median(ours.seconds), "s", floor, own_bound, is_absolute=True, note=note),
            Row(f"{name}: memory", max(ours.megabytes), "MB", bound=MEGABYTES, is_absolute=True),
        ]
        if name in ("grep in 100,000 files", "grep in 1 GB"):
            least = median(other.processor) if other.processor else None
            rows.append(Row(f"{name}: processor time", median(ours.processor), "s", least, TIMES, note=note))
        for what, one in (("sideband", ours), ("peer", other), ("ripgrep in isolation", isolated)):
            if one.seconds:
                times = median(one.seconds), median(one.processor)
                details[f"{name}, {what}"] = {"s": round(times[0], 3), "processor_s": round(times[1], 3)}
    report(rows, **details)


if __name__ == "__main__":
    main()
