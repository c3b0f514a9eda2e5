"""Import a module in a process of its own, and report what the import did."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO

from attrs import frozen

# What plugins change later is not that of the program.
_ENVIRONMENT = dict(os.environ)


@frozen
class ModuleImport:
    """What the import of a module did.

    Attributes:
        modules: the modules that it imported and that a host has not.
        acts: its side effects, one sentence each.
        error: what it raised; empty if it succeeded.
    """

    modules: tuple[str, ...]
    acts: tuple[str, ...]
    error: str = ""


def import_alone(module: str) -> ModuleImport:
    """Import a module in a process that has imported what a host imports, with the import path of this one."""
    requests, answers = _prober()
    path = [str(Path(entry).absolute()) for entry in sys.path if entry]
    requests.write(json.dumps({"module": module, "path": path}) + "\n")
    requests.flush()
    found = json.loads(answers.readline())
    return ModuleImport(tuple(found["modules"]), tuple(found["acts"]), found["error"])


@cache
def _prober() -> tuple[IO[str], IO[str]]:
    """Start the program that forks for each import, which one test session shares."""
    process = subprocess.Popen(  # noqa: S603  this Python and a file beside this one
        [sys.executable, str(Path(__file__).with_name("_import_probe.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        text=True,
    )

    def end() -> None:
        process.communicate()

    atexit.register(end)
    assert process.stdin is not None  # noqa: S101  both are pipes
    assert process.stdout is not None  # noqa: S101
    return process.stdin, process.stdout
