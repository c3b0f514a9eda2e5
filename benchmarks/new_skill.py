"""Measures the way from `sideband new skill` to a green test and a first call, as an author goes it.

The floor takes the same steps without sideband: a program that does nothing, a session of pytest with as many tests
that do nothing, and another program that does nothing. The processor time of all processes counts, which other load
hardly changes; the elapsed time is shown too.

Run: ``python -m benchmarks.new_skill``. Prints one line of JSON.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from ._rows import Row, ratio_of, report

ROUNDS = 5
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
EMPTY_TESTS = "".join(f"def test_{number}():\n    pass\n\n\n" for number in range(3))


def seconds(command: list[str], folder: Path, home: Path) -> tuple[float, float]:
    """Run a process, which must succeed. Return the processor time and the elapsed time in seconds."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SIDEBAND_HOME": str(home / "state")}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True)
    after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, elapsed


def new_skill(folder: Path) -> dict[str, tuple[float, float]]:
    """Make a skill in an empty folder, run its tests and call it. Return the times of each step."""
    sideband = str(Path(sys.executable).with_name("sideband"))
    project = folder / "sideband-stars"
    return {
        "new": seconds([sideband, "new", "skill", "stars"], folder, folder),
        "test": seconds(PYTEST, project, folder),
        "call": seconds([sideband, "call", "--skill-dir", "src", "stars.seen", "--yes"], project, folder),
    }


def nothing(folder: Path) -> dict[str, tuple[float, float]]:
    """Take the same steps without sideband."""
    (folder / "test_nothing.py").write_text(EMPTY_TESTS)
    idle = [sys.executable, "-c", "pass"]
    return {
        "new": seconds(idle, folder, folder),
        "test": seconds([*PYTEST, "-p", "no:sideband"], folder, folder),
        "call": seconds(idle, folder, folder),
    }


def main() -> None:
    """Run the benchmark and print one line of JSON."""
    rounds: dict[str, list[dict[str, tuple[float, float]]]] = {"ours": [], "floor": []}
    for _ in range(ROUNDS):
        for name, steps in (("ours", new_skill), ("floor", nothing)):
            with tempfile.TemporaryDirectory() as folder:
                rounds[name].append(steps(Path(folder)))
    ours, floor = ([sum(used for used, _ in steps.values()) for steps in rounds[name]] for name in ("ours", "floor"))
    report(
        [
            Row("new skill, its tests and a first call", median(ours), "s", median(floor), bound=10,
                is_absolute=True, ratio=ratio_of(ours, floor)),
        ],
        **{f"{step}_s": round(median(one[step][0] for one in rounds["ours"]), 2) for step in ("new", "test", "call")},
        elapsed_s=round(median(sum(elapsed for _, elapsed in one.values()) for one in rounds["ours"]), 1),
    )  # fmt: skip


if __name__ == "__main__":
    main()
