"""What the command line costs before it does anything, as a ratio to an interpreter that does nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

ROUNDS = 15


def milliseconds(command: list[str], home: str) -> float:
    """How long one process takes."""
    environment = {"PATH": os.environ["PATH"], "HOME": home, "SIDEBAND_HOME": home}
    started = perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return (perf_counter() - started) * 1000


def main() -> None:
    """Print one line of JSON."""
    sideband = str(Path(sys.executable).with_name("sideband"))
    commands = {
        "floor_ms": [sys.executable, "-c", "pass"],
        "version_ms": [sideband, "--version"],
        "help_ms": [sideband, "--help"],
        "plugins_list_ms": [sideband, "plugins", "list"],
        "import_ms": [sys.executable, "-c", "import sideband"],
        "import_host_ms": [sys.executable, "-c", "from sideband import Host"],
    }
    rounds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(ROUNDS):
            for name, command in commands.items():
                rounds[name].append(milliseconds(command, home))
    found = {name: round(median(times), 1) for name, times in rounds.items()}
    found["version_x_floor"] = round(found["version_ms"] / found["floor_ms"], 2)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
