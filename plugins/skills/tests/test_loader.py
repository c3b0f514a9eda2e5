import anyio
import pytest
from sideband.loading import SkillPackage, SkillSources
from sideband_skills import FolderLoader, _folder_loader


@pytest.mark.anyio
async def test_skill_folder_loads(make_skill):
    loaded = await FolderLoader().load(SkillSources(folders=(make_skill(),)))
    assert [(skill.key, skill.origin) for skill in loaded.skills] == [("demo", "folder")]
    assert loaded.problems == ()


@pytest.mark.anyio
async def test_loading_can_be_cancelled(make_skill):
    with anyio.CancelScope() as scope:
        scope.cancel()
        await FolderLoader().load(SkillSources(folders=(make_skill(),)))
    assert scope.cancelled_caught


def test_skills_in_a_folder_load_in_order_of_their_names(skills, make_skill, load):
    for name in ("b", "a"):
        make_skill(name)
    make_skill("c", parent=skills / "group" / "inner")
    assert [skill.key for skill in load(skills).skills] == ["a", "b", "c"]


def test_invalid_skill_does_not_stop_others_from_loading(skills, make_skill, load, codes):
    make_skill("good")
    make_skill("bad", manifest=b"\0")
    loaded = load(skills)
    assert [skill.key for skill in loaded.skills] == ["good"]
    assert codes(loaded.problems)[-1] == "manifest.unreadable"


def test_internal_error_is_a_problem_of_its_skill(skills, make_skill, load, monkeypatch):
    make_skill("good")
    make_skill("bad")
    real = _folder_loader.read_python

    def fails_for_one(folder, *rest, **options):
        if folder.name == "bad":
            raise RecursionError("too deep")
        return real(folder, *rest, **options)

    monkeypatch.setattr(_folder_loader, "read_python", fails_for_one)
    loaded = load(skills)
    assert [skill.key for skill in loaded.skills] == ["good"]
    assert "RecursionError: too deep" in loaded.problems[0].reason
    assert loaded.problems[0].fatal


def test_folder_in_several_sources_is_loaded_once(tmp_path, skills, make_skill, load):
    folder = make_skill()
    link = tmp_path / "link"
    link.symlink_to(skills)
    loaded = load(skills, folder, link)
    assert [skill.key for skill in loaded.skills] == ["demo"]
    assert loaded.problems == ()


def test_missing_source_is_a_problem(tmp_path, load):
    (problem,) = load(tmp_path / "nowhere").problems
    assert (problem.code, problem.fatal) == ("skill.source.missing", True)


def test_file_as_a_source_is_a_problem(make_skill, load):
    (problem,) = load(make_skill() / "SKILL.md").problems
    assert "not a folder" in problem.reason


def test_packaged_skill_has_its_distribution_as_origin(make_skill, load):
    folder = make_skill("weather_skill", manifest="---\nname: weather-skill\ndescription: x\n---\n")
    package = SkillPackage(name="weather_skill", path=folder, distribution="sideband-weather", version="1.2")
    (skill,) = load(packages=[package]).skills
    assert (skill.key, skill.origin) == ("weather_skill", "package sideband-weather 1.2")
    assert skill.problems == ()


def test_name_that_differs_from_the_entry_point_is_reported(make_skill, load, codes):
    (skill,) = load(packages=[SkillPackage("weather", make_skill(), "sideband-weather", "1.2")]).skills
    assert codes(skill.problems) == ["name.folder"]
    assert "entry point" in skill.problems[0].reason


def test_source_folder_of_a_package_may_have_the_name_of_its_module(make_skill, load):
    manifest = "---\nname: weather-skill\ndescription: x\n---\n"
    assert load(make_skill("sideband_weather_skill", manifest=manifest)).problems == ()


def test_package_without_a_manifest_is_reported(make_skill, load):
    package = SkillPackage("weather", make_skill(manifest=None), "sideband-weather", "1.2")
    (problem,) = load(packages=[package]).problems
    assert "sideband-weather 1.2" in problem.reason
    assert problem.fatal


def test_python_file_with_a_nul_byte_has_no_tools(make_skill, load, codes):
    code = b"from sideband.skill import tool\n# \0\n@tool\nasync def run() -> int:\n    return 1\n"
    (skill,) = load(make_skill(files={"run.py": code})).skills
    assert skill.tools == ()
    assert codes(skill.problems) == ["encoding"]
