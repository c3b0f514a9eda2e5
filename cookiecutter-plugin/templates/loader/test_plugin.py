"""The loader does what each loader must do, and what its README says."""

from pathlib import Path
from typing import ClassVar

import pytest
from sideband_testing import HostFactory
from sideband_testing.conformance import LoaderConformance

NAME = "{{ cookiecutter.__entry }}"
SKILL = """
name = "door-man"
description = "Greets people."

[tools.greet]
module = "door.py"
description = "Greet a person."
arguments = ["name"]
"""
CODE = """
from sideband.skill import tool


@tool
async def greet(name: str) -> str:
    return f"Hello, {name}."
"""
BROKEN = {
    "syntax": "name = ",
    "unknown-key": f"{SKILL}\ncolor = 'red'",
    "missing-module": SKILL.replace("door.py", "gate.py"),
    "path": SKILL.replace("door.py", "../door.py"),
    "tool-name": SKILL.replace("tools.greet", "tools.Greet"),
}


def write_skills(folder: Path) -> None:
    for name, text in {"door-man": SKILL, **BROKEN}.items():
        (folder / name).mkdir()
        (folder / name / "skill.toml").write_text(text)
        (folder / name / "door.py").write_text(CODE)


class TestConformance(LoaderConformance):
    plugin = f"loader.{NAME}"
    finds: ClassVar = ["door-man"]
    fails = len(BROKEN)

    def prepare(self, folder: Path) -> None:
        write_skills(folder)


@pytest.mark.anyio
async def test_skill_runs_in_a_worker(sideband_host: HostFactory, tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    skills.mkdir()
    write_skills(skills)
    async with sideband_host(f"loader.{NAME}", skill_dirs=[skills]) as host:
        assert await host.call("door_man.greet", name="Ada") == "Hello, Ada."
