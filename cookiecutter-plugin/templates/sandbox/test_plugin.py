"""The sandbox does what each sandbox must do, and what its README says."""

from pathlib import Path
from typing import ClassVar

import pytest
from sideband.errors import SidebandError
from sideband_testing import HostFactory
from sideband_testing.conformance import SandboxConformance

NAME = "{{ cookiecutter.__entry }}"
SKILL = "---\nname: niceness\ndescription: Returns the priority of its process.\n---\n"
CODE = """
import os

from sideband.skill import tool


@tool
async def value() -> int:
    return os.nice(0)
"""


class TestConformance(SandboxConformance):
    plugin = f"sandbox.{NAME}"
    config: ClassVar = {"program": ["nice", "-n", "5"]}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    (tmp_path / "skills" / "niceness").mkdir(parents=True)
    (tmp_path / "skills" / "niceness" / "SKILL.md").write_text(SKILL)
    (tmp_path / "skills" / "niceness" / "tools.py").write_text(CODE)
    return tmp_path / "skills"


@pytest.mark.anyio
async def test_program_starts_the_worker(sideband_host: HostFactory, skills: Path) -> None:
    settings = {"plugins": {NAME: {"program": ["nice", "-n", "7"]}}, "policy": {"isolation": "none"}}
    plugins = (f"sandbox.{NAME}", "loader.skills")
    async with sideband_host(*plugins, settings=settings, skill_dirs=[skills]) as host:
        assert await host.call("niceness.value") >= 7


@pytest.mark.anyio
async def test_missing_program_starts_no_worker(sideband_host: HostFactory, skills: Path) -> None:
    settings = {"plugins": {NAME: {"program": ["no-such-program"]}}, "policy": {"isolation": "none"}}
    plugins = (f"sandbox.{NAME}", "loader.skills")
    async with sideband_host(*plugins, settings=settings, skill_dirs=[skills]) as host:
        with pytest.raises(SidebandError, match="no-such-program was not found"):
            await host.call("niceness.value")
