"""Third-party skill loaders beside the built-in one: their own formats, and loaders that are broken."""

import json

import pytest

LOADER = """
from pathlib import Path
from sideband.loading import LoadedSkills, SkillProblem, SkillSpec

class Acme:
    name = "acme"

    async def load(self, sources):
        found = [folder for folder in sources.folders if (folder / "acme.txt").exists()]
        return LoadedSkills(tuple(SkillSpec(one.name, one.name, "An acme skill.", one) for one in found))

    async def validate(self, folder, *, families=()):
        if not (folder / "acme.txt").exists():
            return (SkillProblem(str(folder), "skill.manifest.missing", "the folder has no acme.txt", fatal=True),)
        return (SkillProblem(str(folder), "acme.color", "unknown color", "use red"),)

def sideband_loaders():
    return [Acme()]
"""

BROKEN = {
    "import": "raise RuntimeError('broken at import')",
    "raises": LOADER.replace("        found", "        1 / 0\n        found").replace(
        "        if not", "        1 / 0\n        if"
    ),
    "exits": LOADER.replace("        if not", "        raise SystemExit(7)\n        if"),
    "types": LOADER.replace("return LoadedSkills(", "return LoadedSkills(('x',)) or (").replace(
        "return (SkillProblem(", "return ('x',) or (SkillProblem("
    ),
    "result": LOADER.replace("return LoadedSkills(", "return None or (").replace(
        "return (Skill", "return None and (Skill"
    ),
}


@pytest.fixture
def acme(site, sideband):
    """Return a function that installs a loader with this code, and returns the command line beside it."""

    def install(code):
        folder = site("acme-loader", "acme_loader", code, "sideband.v1.loader", "acme")
        return lambda *words: sideband(*words, PYTHONPATH=str(folder))

    return install


@pytest.fixture
def hello(make_skill):
    """A skill in the open format, without problems."""
    code = "from sideband.skill import tool\n@tool\nasync def greet() -> str:\n    '''Greet.'''\n    return 'hello'\n"
    return make_skill("hello", code)


@pytest.fixture
def acme_skill(tmp_path):
    folder = tmp_path / "acme_skill"
    folder.mkdir()
    (folder / "acme.txt").write_text("color: blue")
    return folder


def test_skill_is_validated_by_the_loader_of_its_format_only(acme, acme_skill, hello, tmp_path):
    run = acme(LOADER)
    (own,) = json.loads(run("skills", "validate", acme_skill, "--json").stdout)["problems"]
    assert own["code"] == "acme.color"
    assert "no problems found" in run("skills", "validate", hello).stdout
    (tmp_path / "empty").mkdir()
    neither = run("skills", "validate", tmp_path / "empty", "--json")
    reasons = [problem["reason"] for problem in json.loads(neither.stdout)["problems"]]
    assert neither.returncode == 1
    assert sorted(reasons) == ["the folder has no SKILL.md", "the folder has no acme.txt"]


def test_loader_without_validation_is_not_asked(acme, hello):
    run = acme(LOADER.replace("async def validate", "async def _validate"))
    validated = run("skills", "validate", hello)
    assert (validated.returncode, validated.stdout) == (0, f"{hello}: no problems found\n")
    assert "acme" not in validated.stderr


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN)
def test_broken_loader_does_not_affect_skills_of_other_loaders(acme, hello, code):
    run = acme(code)
    validated = run("skills", "validate", hello)
    assert (validated.returncode, validated.stdout) == (0, f"{hello}: no problems found\n")
    assert "acme" in validated.stderr
    listed = run("skills", "list", "--skill-dir", hello, "--json")
    assert "hello" in [skill["key"] for skill in json.loads(listed.stdout)["skills"]]


@pytest.mark.parametrize("code", [BROKEN["import"], BROKEN["raises"]], ids=["import", "raises"])
def test_broken_loader_is_reported_as_the_reason_for_its_missing_skills(acme, hello, acme_skill, code):
    run = acme(code)
    problems = json.loads(run("skills", "list", "--skill-dir", hello, "--json").stdout)["problems"]
    assert [(problem["source"], problem["fatal"]) for problem in problems] == [("loader acme", True)]
    validated = run("skills", "validate", acme_skill)
    assert validated.returncode == 1
    assert "acme" in validated.stdout + validated.stderr
