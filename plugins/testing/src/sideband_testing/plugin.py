"""The fixtures, which pytest finds through the entry point `pytest11`.

pytest imports this module in every session of an environment that has the kit. So it imports nothing but pytest, and
each fixture imports what it needs when a test uses it: the session stays as fast, and nothing of sideband or of the
author's package is imported before its coverage is measured.
"""

# ruff: noqa: PLC0415  see above

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sideband_cassettes import Cassette

    from ._clock import FrozenClock
    from ._credentials import Credentials
    from ._hosts import HostFactory
    from ._made_plugins import PluginMaker
    from ._recorder import Recorder
    from ._scripted import ScriptedMaker
    from ._servers import HttpServer
    from ._workers import SkillWorker


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for cassettes."""
    parser.getgroup("sideband").addoption(
        "--sideband-record",
        choices=("none", "missing", "all"),
        default="none",
        help="which effects of tests with a cassette really happen and are recorded: none (the default: all are "
        "answered from the cassette), those missing in it, or all",
    )


@pytest.fixture
def sideband_host(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HostFactory]:
    """Make hosts that share nothing with the user's, see ``sideband_testing.HostFactory``."""
    from ._hosts import HostFactory, forget_credentials
    from ._keyrings import without_keyring

    with without_keyring():
        if request.config.getoption("--sideband-record") == "none":
            forget_credentials(monkeypatch)
        hosts = HostFactory(tmp_path / "home", monkeypatch)
        if "cassette" in request.fixturenames:
            from ._cassettes import remedy_for

            hosts.remedy = remedy_for(request)
        if "anyio_backend" in request.fixturenames:
            request.getfixturevalue("_sideband_hosts_to_close").append(hosts)
        yield hosts
        hosts.check_closed()


@pytest.fixture
async def _sideband_hosts_to_close() -> AsyncIterator[list[HostFactory]]:
    """Close the hosts that a test left open, in the event loop and the task of the test."""
    factories: list[HostFactory] = []
    yield factories
    for hosts in factories:
        await hosts.close()


@pytest.fixture
def make_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginMaker]:
    """Install plugins for one test, see ``sideband_testing.PluginMaker``."""
    from ._made_plugins import PluginMaker

    maker = PluginMaker(tmp_path / "site", monkeypatch)
    yield maker
    maker.close()


@pytest.fixture
def recorder() -> Recorder:
    """Record the hooks that a host calls, see ``sideband_testing.Recorder``."""
    from ._recorder import Recorder

    return Recorder()


@pytest.fixture
def scripted() -> ScriptedMaker:
    """Make providers whose model plays turns, see ``sideband_testing.ScriptedPlugin``."""
    from ._scripted import make_scripted

    return make_scripted


@pytest.fixture
def cassette(request: pytest.FixtureRequest, tmp_path: Path) -> Cassette:
    """Record the effects of a host in a file beside the test, or answer them from it.

    Pass it to a host: ``sideband_host("op.http", cassette=cassette)``. The file is
    ``cassettes/TEST_MODULE/TEST_NAME.json``; it is written with ``pytest --sideband-record=missing`` or ``all``.
    """
    from ._cassettes import cassette_of

    return cassette_of(request, tmp_path)


@pytest.fixture
def worker(sideband_host: HostFactory, tmp_path: Path) -> SkillWorker:
    """Call tools of skills in real workers, see ``sideband_testing.SkillWorker``."""
    from ._workers import SkillWorker

    return SkillWorker(sideband_host, tmp_path / "skills")


@pytest.fixture
def credentials() -> Credentials:
    """Choose the secrets that plugins use, see ``sideband_testing.Credentials``."""
    from ._credentials import Credentials

    return Credentials()


@pytest.fixture
def http_server() -> Iterator[HttpServer]:
    """Start a real HTTP server on the loopback interface, see ``sideband_testing.HttpServer``."""
    from ._servers import HttpServer

    with HttpServer() as server:
        yield server


@pytest.fixture
def clock() -> Iterator[FrozenClock]:
    """Freeze the clock of this process, see ``sideband_testing.FrozenClock``."""
    from ._clock import FrozenClock

    with FrozenClock() as frozen:
        yield frozen
