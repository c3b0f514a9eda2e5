"""Runs mypy, strictly, on every package and on the API as an author uses it. Called by ``make types``."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Check everything, and return mypy's exit code."""
    folders = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
    sources = [source for folder in folders for source in sorted(ROOT.glob(f"{folder}/src"))]
    tops = [top for source in sources for top in sorted(source.iterdir()) if (top / "py.typed").exists()]
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, tops), str(ROOT / "tests" / "authors")]
    environment = {"MYPYPATH": ":".join(map(str, sources))}
    return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
