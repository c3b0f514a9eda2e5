"""The files of a worker's SDK folder, except the generated op families."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["WORKER_FILE", "runtime_files"]

WORKER_FILE = "sideband/worker.py"
"""The path of the worker script in the SDK folder."""


def runtime_files() -> Mapping[str, Path]:
    """Return the runtime's files: the path in an SDK folder and the current path of each.

    They are the same modules under the same names as in the installed package, without the modules of the host.
    """
    workers = Path(__file__).parent
    package = workers.parent
    runtime = workers / "runtime"
    files = {f"sideband/workers/runtime/{path.name}": path for path in sorted(runtime.glob("*.py"))}
    return {
        "sideband/__init__.py": runtime / "_package.py",
        "sideband/_from_host.py": package / "_from_host.py",
        "sideband/skill.py": package / "skill.py",
        WORKER_FILE: package / "worker.py",
        "sideband/workers/__init__.py": runtime / "_package.py",
        **files,
    }
