"""The peers, in an environment of their own: nothing of ours depends on them, and CI never installs them."""

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
MISSING = "its peer is not installed: `make bench` does that"


def peer(script: str, *arguments: object) -> dict[str, Any] | None:
    """What a script of ``peers/`` measures; ``None`` if the peers are not installed."""
    if not PYTHON.exists():
        return None
    command = [str(PYTHON), str(HERE / f"{script}.py"), *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=300)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def model_server() -> Iterator[int]:
    """The port of a server of models that answers at once, in a process of its own."""
    command = [sys.executable, str(HERE / "model_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()
