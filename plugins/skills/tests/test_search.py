"""The search for skills in folders, and its reports."""

import pytest
from sideband.loading import SkillSources
from sideband_skills import FolderLoader
from sideband_skills._config import Config


@pytest.fixture
def search(skills, load, codes):
    """Return a function that loads the folder of skills and returns the names and the problems by code."""

    def run(**options):
        loaded = load(skills, **options)
        found = codes(loaded.problems)
        assert len(set(found)) == len(found)
        return [skill.key for skill in loaded.skills], dict(zip(found, loaded.problems, strict=True))

    return run


def test_skill_four_levels_deep_is_found(skills, make_skill, search):
    make_skill("deep", parent=skills / "one" / "two" / "three")
    assert search() == (["deep"], {})


def test_skipped_skills_are_reported_once_with_numbers(skills, make_skill, search):
    make_skill("good")
    for name in ("a", "b"):
        make_skill(name, parent=skills / ".claude" / "skills")
        make_skill(name, parent=skills / "good" / "inner")
    make_skill("deep", parent=skills / "one" / "two" / "three" / "four")
    names, problems = search()
    assert names == ["good"]
    problem = problems["source.skipped"]
    for text in ("skipped 5 skills", "2 in hidden folders", "1 deeper than 4 levels", "2 below another skill"):
        assert text in problem.reason
    assert (problem.source, problem.fatal) == (str(skills), False)


@pytest.mark.parametrize("parent", [".claude/skills", "one/two/three/four/five"])
def test_hint_for_skipped_skills_names_a_source_that_finds_them(skills, make_skill, load, search, parent):
    folder = make_skill("lost", parent=skills / parent).parent
    names, problems = search()
    assert names == []
    assert str(folder) in problems["source.skipped"].hint
    assert [skill.key for skill in load(folder).skills] == ["lost"]


@pytest.mark.parametrize("parent", ["", "one/two", "good"])
def test_hint_never_names_a_source_that_skips_the_skill_again(skills, make_skill, load, search, parent):
    make_skill("good")
    manifest = "---\nname: lost\ndescription: x\n---\n"
    lost = make_skill("lost" if parent == "good" else ".lost", manifest=manifest, parent=skills / parent)
    _, problems = search()
    assert f"'{lost}'" in problems["source.skipped"].hint
    assert [skill.key for skill in load(lost).skills] == ["lost"]


def test_skill_below_a_skill_that_is_the_source_is_reported(make_skill, load, codes):
    folder = make_skill("outer")
    make_skill("inner", parent=folder)
    loaded = load(folder)
    assert [skill.key for skill in loaded.skills] == ["outer"]
    assert codes(loaded.problems) == ["source.skipped"]


def test_count_of_skipped_skills_ends_in_a_huge_folder(skills, make_skill, search):
    make_skill("good")
    for number in range(9):
        make_skill(f"s{number}", parent=skills / ".hidden" / str(number))
    _, problems = search(limits=Config(files=2))
    assert "skipped at least 5 skills" in problems["source.skipped"].reason


def test_hidden_folder_with_too_many_entries_is_reported(skills, make_skill, search):
    make_skill("good")
    for number in range(20):
        make_skill(f"s{number}", parent=skills / ".hidden")
    assert "too many entries" in search(limits=Config(files=2))[1]["source.skipped"].reason


@pytest.mark.parametrize("folder", [".git", ".venv", "node_modules", "__pycache__", "sideband_sdk"])
def test_manifests_in_folders_of_tools_are_not_counted(skills, make_skill, search, folder):
    make_skill("good")
    make_skill("lost", parent=skills / folder)
    assert search() == (["good"], {})


def test_source_without_any_skill_is_reported(skills, search):
    names, problems = search()
    assert (names, list(problems)) == ([], ["source.empty"])
    assert str(skills) in problems["source.empty"].reason


def test_source_with_code_and_no_manifest_is_reported(make_skill, load, codes):
    assert codes(load(make_skill(files={"run.py": ""}, manifest=None)).problems) == ["source.empty"]


def test_folders_without_a_manifest_are_reported_once(make_skill, search):
    make_skill("good")
    for number in range(9):
        make_skill(f"nothing-{number}", {"run.py": ""}, manifest=None)
    _, problems = search()
    reason = problems["manifest.missing"].reason
    assert "9 folders (`nothing-0`" in reason
    assert "and 4 more" in reason


def test_folders_without_a_manifest_are_named_if_there_is_no_skill(make_skill, search):
    make_skill("nothing", {"run.py": ""}, manifest=None)
    assert "`nothing`" in search()[1]["source.empty"].reason


def test_links_to_folders_are_not_followed_and_reported_once(tmp_path, skills, make_skill, search):
    for name in ("a", "b"):
        (skills / name).symlink_to(make_skill(name, parent=tmp_path / "elsewhere"))
    names, problems = search()
    assert names == []
    assert "skipped 2 symbolic links (`a`, `b`)" in problems["source.link"].reason


def test_link_into_another_source_is_not_reported(tmp_path, skills, make_skill, load):
    elsewhere = tmp_path / "elsewhere"
    (skills / "demo").symlink_to(make_skill("demo", parent=elsewhere))
    make_skill("own")
    loaded = load(skills, elsewhere)
    assert [skill.key for skill in loaded.skills] == ["demo", "own"]
    assert loaded.problems == ()


@pytest.mark.parametrize(
    "shape",
    [
        (),
        ("README.md",),
        ("docs/guide.md", "src/run.py"),
        (".claude/skills/a/SKILL.md", ".github/workflows/ci.yml"),
        ("plugins/one/skills/group/a/SKILL.md",),
        (".git/hooks/SKILL.md",),
        ("node_modules/x/SKILL.md",),
        ("one/two/three/four/five/six.md",),
    ],
)
def test_repository_without_loadable_skills_yields_a_word(tmp_path, load, shape):
    repository = tmp_path / "repository"
    repository.mkdir()
    for name in shape:
        file = repository / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("---\nname: a\ndescription: x\n---\n" if file.name == "SKILL.md" else "text\n")
    loaded = load(repository)
    assert loaded.skills == ()
    assert loaded.problems


@pytest.mark.anyio
async def test_folders_of_the_project_are_searched_last_and_mark_their_skills(tmp_path, make_skill):
    mine, theirs = make_skill(), make_skill("other", parent=tmp_path / "project")
    found = await FolderLoader().load(SkillSources(folders=(mine,), project_folders=(theirs,)))
    assert [(skill.key, skill.origin, skill.of_project) for skill in found.skills] == [
        ("demo", "folder", False),
        ("other", "project", True),
    ]


def test_folder_that_is_also_a_source_of_the_user_is_not_of_the_project(make_skill, load):
    folder = make_skill()
    (skill,) = load(folder, project_folders=(folder,)).skills
    assert not skill.of_project
