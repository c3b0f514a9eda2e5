"""Measures what the plugin of the testing kit costs a session of pytest that does not use it.

A session collects one empty test, without other plugins, and in alternating rounds with and without the kit. The
figures are processor time, since the difference is far smaller than the noise of other load.

Run: ``python -m benchmarks.testing_kit``. Prints one line of JSON.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from ._rows import Row, report

ROUNDS = 25
COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]


def milliseconds(folder: Path, *options: str) -> float:
    """Return the processor time of a session in milliseconds."""
    before = getrusage(RUSAGE_CHILDREN)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([*COLLECT, *options], cwd=folder, check=True, env=environment, stdout=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    """Run the benchmark and print one line of JSON."""
    without, used = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        for _ in range(ROUNDS):
            without.append(milliseconds(folder))
            used.append(milliseconds(folder, "-p", "sideband_testing.plugin"))
    ratio = median(one / other for one, other in zip(used, without, strict=True))
    report([Row("pytest that collects one test, with the kit", median(used), "ms", median(without), ratio=ratio)])


if __name__ == "__main__":
    main()
