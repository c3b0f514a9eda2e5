"""A host with services, skills that provide them and skills that call them."""

from contextlib import asynccontextmanager
from textwrap import dedent

import pytest
import sideband_services.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def write_skill(tmp_path):
    """Return a function that writes a skill with this source, capabilities and services."""

    def write(name, source, capabilities="", provides="", folder="skills"):
        path = tmp_path / folder / name
        path.mkdir(parents=True)
        keys = {"sideband.capabilities": capabilities, "sideband.provides": provides}
        lines = "".join(f"  {key}: {value}\n" for key, value in keys.items() if value)
        metadata = f"metadata:\n{lines}" if lines else ""
        path.joinpath("SKILL.md").write_text(f"---\nname: {name}\ndescription: For a test.\n{metadata}---\n")
        path.joinpath("tools.py").write_text(dedent(source))
        return path

    return write


@pytest.fixture
def open_host(tmp_path):
    @asynccontextmanager
    async def open_one(*, grants=None, plugins=(), settings=None, **options):
        found = [
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("loader", "skills", sideband_skills.plugin),
            Plugin("op", "services", sideband_services.plugin),
            *plugins,
        ]
        tables = {"policy": {"isolation": "none"}, "grants": grants or {}, **(settings or {})}
        options.setdefault("skill_dirs", [tmp_path / "skills"])
        async with Host(home=tmp_path / "home", settings=tables, plugins=found, autoload=False, **options) as host:
            yield host

    return open_one
