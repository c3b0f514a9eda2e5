"""Runs every benchmark, each in a process of its own: ``make bench``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Print what each prints, under its name."""
    worst = 0
    for script in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        print(f"{script.stem}:", flush=True)
        worst = max(worst, subprocess.run([sys.executable, script], check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
