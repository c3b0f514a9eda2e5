"""The source does what each source of tools must do, and what its README says."""

from pathlib import Path
from typing import ClassVar

import anyio
import pytest
from sideband import Plugin
from sideband_agent import Agent
from sideband_scripted import Scripted
from sideband_testing import HostFactory
from sideband_testing.conformance import Example, ToolSourceConformance

NAME = "{{ cookiecutter.__entry }}"


class TestConformance(ToolSourceConformance):
    plugin = f"tool.{NAME}"
    source = NAME
    config: ClassVar = {"folder": "{folder}", "seconds": 3_600}
    examples: ClassVar = [Example(f"{NAME}.tea", result="Two minutes.")]

    def prepare(self, folder: Path) -> None:
        (folder / "tea.md").write_text("Two minutes.")
        (folder / "Not a name.md").write_text("This is not a tool.")


@pytest.mark.anyio
async def test_new_page_is_a_new_tool(sideband_host: HostFactory, tmp_path: Path) -> None:
    settings = {"plugins": {NAME: {"folder": str(tmp_path / "pages"), "seconds": 0.01}}}
    plugins = (f"tool.{NAME}", "op.llm", Plugin("provider", "demo", Scripted([], name="demo")))
    async with sideband_host(*plugins, settings=settings) as host, Agent(host, model="demo:any"):
        await host.tools.wait_for_sources()
        assert f"{NAME}.tea" not in (await host.tools.view()).names
        (tmp_path / "pages").mkdir()
        (tmp_path / "pages" / "tea.md").write_text("Two minutes.")
        with anyio.fail_after(30):
            while f"{NAME}.tea" not in (await host.tools.view()).names:
                await anyio.sleep(0.01)
