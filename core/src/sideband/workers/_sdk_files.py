"""Which files make up the SDK folder of a worker, beside the families that are generated into it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["WORKER_FILE", "runtime_files"]

WORKER_FILE = "sideband/worker.py"
"""The script that starts a worker, relative to the SDK folder."""


def runtime_files() -> Mapping[str, Path]:
    """The runtime's files: where each belongs in an SDK folder, and where it is now.

    They are the same modules under the same names as in the installed package, without the host's part of it.
    """
    workers = Path(__file__).parent
    package = workers.parent
    runtime = workers / "runtime"
    files = {f"sideband/workers/runtime/{path.name}": path for path in sorted(runtime.glob("*.py"))}
    return {
        "sideband/__init__.py": runtime / "_package.py",
        "sideband/skill.py": package / "skill.py",
        WORKER_FILE: package / "worker.py",
        "sideband/workers/__init__.py": runtime / "_package.py",
        **files,
    }
