"""Runs the peers in their own environment: sideband does not depend on them, and CI never installs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "peers"
PYTHON = Path(os.environ.get("SIDEBAND_BENCH_PYTHON") or Path(sys.prefix) / "peers" / "bin" / "python")
# Compiling all modules at each start would add to the durations and the memory of all sides.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
MISSING = "the peer is not installed; run `make bench`"


def peer(script: str, *arguments: object) -> dict[str, Any] | None:
    """Run a script of ``peers/`` and return its figures, or ``None`` if the peers are not installed."""
    if not PYTHON.exists():
        return None
    command = [str(PYTHON), str(HERE / f"{script}.py"), *map(str, arguments)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT, timeout=300
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def model_server() -> Iterator[int]:
    """Run the model server in a separate process and yield its port."""
    command = [sys.executable, str(HERE / "model_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()
