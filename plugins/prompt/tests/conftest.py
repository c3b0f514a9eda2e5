"""A host with this plugin, and helpers that call it as an agent would."""

from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
import sideband_prompt.plugin
from sideband import Host, Plugin
from sideband.hooks import Sections


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".sideband").mkdir(parents=True)
    return folder


@pytest.fixture
def write():
    def write(path: Path, content: str | bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def make_host(sideband_host, home):
    def make(**config) -> Host:
        plugins = [Plugin(kind, "prompt", sideband_prompt.plugin) for kind in ("hook", "tool")]
        return sideband_host(*plugins, home=home, settings={"plugins": {"prompt": config}})

    return make


@pytest.fixture
def prompt_of(make_host):
    """Return the sections of a prompt by name, built by a new host."""

    async def prompt_of(config=None, **event):
        async with make_host(**(config or {})) as host:
            found = await host.hooks.collect(Sections(**event))
        return {one.value.name: one.value.text for one in found}

    return prompt_of


@pytest.fixture
def section(prompt_of):
    """Return one section by name; for tests without an event loop."""

    def section(name, config=None, **event):
        async def collect():
            return await prompt_of(config, **event)

        return anyio.run(collect).get(name)

    return section


@pytest.fixture
def use():
    """Call a tool of a host as an agent would, with validated arguments and in a session."""

    async def use(host, name, session="s1", **arguments):
        plugin = await host.plugins.load("tool", "prompt")
        tool = (await host.tools.view()).get(name)
        base = plugin.context
        ctx = SimpleNamespace(config=base.config, state=base.state, home=base.home, session=SimpleNamespace(id=session))
        return await tool.run(tool.validate(arguments), ctx)

    return use
