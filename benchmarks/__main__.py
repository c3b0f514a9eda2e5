"""Runs each benchmark in a separate process and prints a summary: ``make bench``.

Run: ``python -m benchmarks [--only NAME]… [--json]``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ._rows import table

HERE = Path(__file__).parent
NAMES = tuple(sorted(script.stem for script in HERE.glob("[a-z]*.py")))


def main() -> int:
    """Run the selected benchmarks and print their figures and the summary."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare sideband with a floor or a peer."
    )
    parser.add_argument("--only", action="append", choices=NAMES, help="run only this benchmark; can be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all rows and figures")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    figures: dict[str, list[Any]] = {}
    worst = 0
    for name in options.only or NAMES:
        print(f"{name} …", file=sys.stderr, flush=True)
        code, found = run(name)
        worst = max(worst, code)
        rows += [row for line in found for row in line.pop("rows", ())]
        figures[name] = [line for line in found if line]
        if not options.json:
            for line in figures[name]:
                print(f"{name}: {json.dumps(line)}", flush=True)
    print(json.dumps({"rows": rows, "figures": figures}) if options.json else f"\n{table(rows)}")
    return worst


def run(name: str) -> tuple[int, list[dict[str, Any]]]:
    """Run one benchmark; return its exit code and the JSON objects that it prints."""
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    done = subprocess.run(command, check=False, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)
    return abs(done.returncode), [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())
