"""Run mypy in strict mode: on every package and the API as an author uses it, or on the packages named as arguments."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(packages: list[str]) -> int:
    """Check the packages, or everything if the list is empty. Return mypy's exit code."""
    folders = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
    sources = [source for folder in folders for source in sorted(ROOT.glob(f"{folder}/src"))]
    chosen = [ROOT / package / "src" for package in packages] or sources
    checked = [top for source in chosen for top in sorted(source.iterdir()) if (top / "py.typed").exists()]
    if not packages:
        checked.append(ROOT / "tests" / "authors")
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, checked)]
    environment = {"MYPYPATH": ":".join(map(str, sources))}
    return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
