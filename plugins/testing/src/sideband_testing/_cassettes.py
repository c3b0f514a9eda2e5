"""The fixture `cassette`: the file with the effects of one test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from sideband_cassettes import Cassette, Mode

OPTION = "--sideband-record"
_MODES: dict[str, Mode] = {"none": "replay", "missing": "missing", "all": "record"}
_BACKENDS = ("asyncio", "trio")


def cassette_of(request: pytest.FixtureRequest, folder: Path) -> Cassette:
    """Return the cassette of a test.

    Args:
        request: the request of the fixture.
        folder: the temporary folder of the test, whose name differs between runs.
    """
    path = _path(request)
    mode = _MODES[request.config.getoption(OPTION)]
    if mode == "replay" and not path.exists():
        pytest.fail(
            f"the cassette {path} of this test does not exist: record it with `{_command(request, 'missing')}`",
            pytrace=False,
        )
    return Cassette(path, mode, places={"test": folder})


def remedy_for(request: pytest.FixtureRequest) -> str:
    """Return what to do if the test no longer requests what its cassette has."""
    return f"if the new effects are intended, record them with `{_command(request, 'all')}`, and review the file"


def _command(request: pytest.FixtureRequest, mode: str) -> str:
    return f"pytest {OPTION}={mode} {shlex.quote(request.node.nodeid)}"


def _path(request: pytest.FixtureRequest) -> Path:
    """Return the file, which tests that differ only in the event loop share."""
    node: Any = request.node
    words = [request.cls.__name__] if request.cls is not None else []
    words.append(node.originalname or node.name)
    if hasattr(node, "callspec"):
        words += [word for word in node.callspec.id.split("-") if word not in _BACKENDS]
    name = re.sub(r"[^\w.=-]+", "_", "-".join(words))
    return Path(request.path.parent) / "cassettes" / request.path.stem / f"{name}.json"
