"""Skills with the same name: which one is loaded, and what is reported."""

import pytest
from sideband.loading import SkillPackage

MANIFEST = "---\nname: demo\ndescription: x\n---\n{}\n"
PACKAGE = {"name": "demo", "distribution": "sideband-demo", "version": "1.2"}


@pytest.fixture
def copies(tmp_path, make_skill):
    """Return a function that writes skills with the name ``demo``, each from its text and files."""

    def write(*skills):
        return [
            make_skill("demo", files, manifest=MANIFEST.format(text), parent=tmp_path / str(number))
            for number, (text, files) in enumerate(skills)
        ]

    return write


def test_first_of_several_skills_with_one_name_is_loaded_with_a_notice(copies, load):
    first, *others = copies(*((str(number), {}) for number in range(9)))
    loaded = load(first, *others)
    assert [skill.source for skill in loaded.skills] == [first]
    (problem,) = loaded.problems
    assert (problem.code, problem.fatal) == ("skill.duplicate", False)
    assert f"using the first, `{first}` (folder), not `{others[0]}` (folder)" in problem.reason
    assert "and 3 more" in problem.reason


def test_order_of_the_sources_decides_which_skill_is_loaded(copies, load):
    first, second = copies(("a", {}), ("b", {}))
    assert load(second, first).skills[0].source == second


def test_folder_precedes_package_which_precedes_the_project(copies, load):
    folder, packaged, project = copies(("a", {}), ("b", {}), ("c", {}))
    package = SkillPackage(path=packaged, **PACKAGE)
    assert load(folder, packages=[package], project_folders=(project,)).skills[0].source == folder
    assert load(packages=[package], project_folders=(project,)).skills[0].source == packaged
    assert load(project_folders=(project,)).skills[0].source == project


def test_identical_copies_are_loaded_once_without_a_notice(copies, load):
    files = {"run.py": "x = 1\n", "data/a.txt": "a"}
    first, second, project = copies(("a", files), ("a", files), ("a", files))
    loaded = load(first, second, project_folders=(project,))
    assert [skill.source for skill in loaded.skills] == [first]
    assert loaded.problems == ()


@pytest.mark.parametrize(
    "files",
    [{"run.py": "x = 2\n"}, {"run.py": "x = 1\n", "more.txt": ""}, {}, {"Run.py": "x = 1\n"}],
    ids=["content", "one more", "one less", "name"],
)
def test_copy_with_another_file_is_reported(copies, load, codes, files):
    assert codes(load(*copies(("a", {"run.py": "x = 1\n"}), ("a", files))).problems) == ["duplicate"]


def test_copy_with_another_executable_bit_is_reported(copies, load, codes):
    first, second = copies(("a", {"run.py": ""}), ("a", {"run.py": ""}))
    (second / "run.py").chmod(0o755)
    assert codes(load(first, second).problems) == ["duplicate"]


def test_copies_may_differ_in_files_that_are_not_loaded(copies, load):
    first, second = copies(("a", {".DS_Store": "1"}), ("a", {".DS_Store": "2", "__pycache__/x.pyc": "3"}))
    assert load(first, second).problems == ()


def test_copy_in_a_package_is_reported_since_its_dependencies_may_differ(copies, load, codes):
    first, second = copies(("a", {}), ("a", {}))
    assert codes(load(first, packages=[SkillPackage(path=second, **PACKAGE)]).problems) == ["duplicate"]


def test_names_with_the_same_name_part_are_duplicates(make_skill, load, codes):
    assert codes(load(make_skill("my-skill"), make_skill("my_skill")).problems) == ["duplicate"]


def test_skill_that_fails_to_load_leaves_its_name_to_the_next(copies, load, codes):
    first, second = copies(("a", {"run.py": "# /// script\n# dependencies = 3\n# ///\n"}), ("b", {}))
    loaded = load(first, second)
    assert [skill.source for skill in loaded.skills] == [second]
    assert [problem.fatal for problem in loaded.problems] == [True]


def test_problems_of_a_skill_that_is_not_used_are_not_reported(copies, load, codes):
    first, second = copies(("a", {}), ("b", {"run.py": "from sideband.skill import tool\nasync def ("}))
    assert codes(load(first, second).problems) == ["duplicate"]


def test_files_of_copies_that_differ_in_size_are_compared_within_the_limits(copies, load, codes):
    large = {"a.bin": b"\0" * (2 << 20)}
    assert load(*copies(("a", large), ("a", large))).problems == ()


def test_every_manifest_of_a_collection_is_loaded_identical_or_reported(tmp_path, make_skill, load, codes):
    """Published collections have these shapes: copies of whole repositories, hidden folders, and nested skills."""
    collection = tmp_path / "collection"
    keys = "version: 1.0\nauthor: x\ntags: [a]\n"
    for number in range(12):
        text = f"---\nname: skill-{number}\ndescription: x\n{keys}---\nText {{}}\n"
        for repository in ("first", "second", "third"):
            # The third repository has changed every other skill.
            changed = repository == "third" and number % 2 == 1
            make_skill(f"skill-{number}", manifest=text.format(changed), parent=collection / repository / "skills")
    for number in range(3):
        make_skill(f"hidden-{number}", parent=collection / "first" / ".claude" / "skills")
        make_skill(f"deep-{number}", parent=collection / "a" / "b" / "c" / "d")
        make_skill(f"nested-{number}", parent=collection / "first" / "skills" / "skill-0" / "examples")
    loaded = load(collection)
    assert len(loaded.skills) == 12
    assert [codes(skill.problems) for skill in loaded.skills] == [["key.unknown"]] * 12
    # With its examples, the first skill differs from its copies.
    assert sorted(codes(loaded.problems)) == ["duplicate"] * 7 + ["manifest.missing", "source.skipped"]
    (skipped,) = [problem for problem in loaded.problems if problem.code == "skill.source.skipped"]
    assert "9 skills: " in skipped.reason
    for part in ("3 in hidden folders", "3 deeper than 4 levels", "3 below another skill"):
        assert part in skipped.reason
