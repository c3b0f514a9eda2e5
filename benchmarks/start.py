"""Measures the startup of the command line and of imports, compared with an interpreter that does nothing.

The floor of ``plugins list`` also reads an index of entry points and checks that it is up to date. At least 30 plugins
are used: the installed ones, and generated ones if necessary.

Run: ``python -m benchmarks.start``. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from sideband.plugins import PluginPolicy, discover

from ._rows import Row, ratio_of, report

ROUNDS = 15
SLOW_ROUNDS = 5
PLUGINS = 30
INDEXED = """
import json, os, sys
with open(sys.argv[1], "rb") as file:
    index = json.load(file)
assert all(os.stat(folder).st_mtime_ns == changed for folder, changed in index["folders"])
"""


def milliseconds(command: list[str], home: Path) -> float:
    """Return the duration of a process in milliseconds."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SIDEBAND_HOME": str(home)}
    started = perf_counter()
    subprocess.run(
        command, check=True, env={**environment, "PYTHONPATH": str(home / "site")}, stdout=subprocess.DEVNULL
    )
    return (perf_counter() - started) * 1000


def add_plugins(home: Path) -> int:
    """Generate the missing plugins and return the total number of plugins."""
    installed = len(discover(home, PluginPolicy()))
    site = home / "site"
    site.mkdir()
    for number in range(installed, PLUGINS):
        (site / f"made_up_{number}.py").write_text("def sideband_ops():\n    return []\n")
        info = site / f"made_up_{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: made-up-{number}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[sideband.v1.op]\nmade_up_{number} = made_up_{number}\n")
    os.utime(site, (0, 0))  # An index of a folder that has just changed is not trusted.
    return max(installed, PLUGINS)


def write_index(home: Path) -> Path:
    """Write the index that the floor reads, and return its path."""
    folders = [(folder, Path(folder).stat().st_mtime_ns) for folder in sys.path if Path(folder).is_dir()]
    plugins = [{"kind": "op", "name": f"made_up_{number}", "value": f"made_up_{number}"} for number in range(PLUGINS)]
    file = home / "index.json"
    file.write_text(json.dumps({"folders": folders, "plugins": plugins}))
    return file


def main() -> None:
    """Run the benchmark and print one line of JSON."""
    sideband = str(Path(sys.executable).with_name("sideband"))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        plugins = add_plugins(home)
        commands = {
            "floor": [sys.executable, "-c", "pass"],
            "version": [sideband, "--version"],
            "import": [sys.executable, "-c", "import sideband"],
            "indexed": [sys.executable, "-c", INDEXED, str(write_index(home))],
            "help": [sideband, "--help"],
            "import_host": [sys.executable, "-c", "from sideband import Host"],
            "plugins_list": [sideband, "plugins", "list"],
        }
        rounds: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(ROUNDS):
            for name, command in commands.items():
                if number < SLOW_ROUNDS or name in ("floor", "version", "import", "indexed"):
                    rounds[name].append(milliseconds(command, home))
    middle = {name: median(times) for name, times in rounds.items()}
    report(
        [
            Row("sideband --version", middle["version"], "ms", middle["floor"], bound=1.5,
                ratio=ratio_of(rounds["version"], rounds["floor"])),
            Row(f"sideband plugins list, {plugins} plugins", middle["plugins_list"], "ms", middle["indexed"], bound=2,
                ratio=ratio_of(rounds["plugins_list"], rounds["indexed"][:SLOW_ROUNDS])),
            Row("import sideband", middle["import"] / 1000, "s"),
            Row("from sideband import Host", middle["import_host"] / 1000, "s", bound=0.3, is_absolute=True),
        ],
        **{f"{name}_ms": round(value, 1) for name, value in middle.items()},
    )  # fmt: skip


if __name__ == "__main__":
    main()
