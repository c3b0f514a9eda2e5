"""The import path of a skill's modules."""

import sys

from sideband.workers.runtime._modules import Modules


def test_modules_of_a_skill_precede_its_dependencies_even_if_added_later(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    skill, packages = tmp_path / "skill", tmp_path / "packages"
    (skill / "scripts").mkdir(parents=True)
    packages.mkdir()
    (packages / "neighbor_of_tools.py").write_text("ORIGIN = 'packages'\n")
    (skill / "scripts" / "neighbor_of_tools.py").write_text("ORIGIN = 'skill'\n")
    (skill / "first_tools.py").write_text("async def run(): pass\n")
    (skill / "scripts" / "second_tools.py").write_text("from neighbor_of_tools import ORIGIN\nasync def run(): pass\n")
    modules = Modules(str(packages))
    modules.function(f"{skill}/first_tools.py", "run", str(skill))
    found = modules.function(f"{skill}/scripts/second_tools.py", "run", str(skill))
    assert found.__globals__["ORIGIN"] == "skill"
