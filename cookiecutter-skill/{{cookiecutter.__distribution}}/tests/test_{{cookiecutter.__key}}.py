"""The tools of the skill, called in workers by a host of their own. No test needs the network."""

import shutil
from pathlib import Path

import pytest
from sideband import CallRequest, SidebandError
from sideband_cassettes import Cassette
from sideband_testing import HostFactory

NAME = "{{ cookiecutter.name }}"
SOURCE = Path(__file__).parents[1] / "src" / "{{ cookiecutter.__module }}"
PLUGINS = ("loader.skills", "op.http", "op.sql")
RIGHTS = ("http:host=api.github.com,method=GET", "sql:path=releases.db")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # the tools run in a worker, whatever the event loop of the host is


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A copy that is named `releases`, so that cassettes remain valid if the skill is renamed."""
    folder = shutil.copytree(SOURCE, tmp_path / "skills" / "releases")
    manifest = folder / "SKILL.md"
    manifest.write_text(manifest.read_text().replace(f"name: {NAME}\n", "name: releases\n", 1))
    return folder


async def test_latest_release_is_found(sideband_host: HostFactory, skill: Path, cassette: Cassette) -> None:
    async with sideband_host(*PLUGINS, skill_dirs=[skill], cassette=cassette) as host:
        found = []
        for _ in range(2):
            request = CallRequest("releases.latest", {"repo": "pytest-dev/pluggy"}, grants=RIGHTS)
            found.append((await host.run(request)).output)
    page = "https://github.com/pytest-dev/pluggy/releases/tag/1.6.0"
    assert found[0] == {"repo": "pytest-dev/pluggy", "version": "1.6.0", "page": page, "new": True}
    assert found[1] == {**found[0], "new": False}


async def test_no_release_is_known_at_first(sideband_host: HostFactory, skill: Path) -> None:
    async with sideband_host(*PLUGINS, skill_dirs=[skill]) as host:
        assert (await host.run(CallRequest("releases.seen", grants=RIGHTS))).output == {}


async def test_name_without_owner_is_refused(sideband_host: HostFactory, skill: Path) -> None:
    async with sideband_host(*PLUGINS, skill_dirs=[skill]) as host:
        with pytest.raises(SidebandError, match="expected owner/name"):
            await host.run(CallRequest("releases.latest", {"repo": "pluggy"}, grants=RIGHTS))
