"""Parsed skills are cached between loads, and any change of a file is seen at once."""

import os
from time import time_ns

import pytest
from sideband.loading import SkillPackage, SkillSources
from sideband_skills import _folder_loader
from sideband_skills._config import Config
from sideband_skills._meter import Meter

MANIFEST = "---\nname: {name}\ndescription: {text}\n{more}---\n# Text\n"
TOOL = 'from sideband.skill import tool, http\n\n@tool\nasync def {name}(a: int = 1) -> int:\n    """Do it."""\n'
LATER = 10_000_000_000
TYPES = '''
    import enum
    from dataclasses import dataclass
    from datetime import date, datetime, time
    from decimal import Decimal
    from pathlib import Path
    from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union
    from uuid import UUID
    from sideband.skill import files, http, tool

    class Level(enum.Enum):
        LOW = 1
        HIGH = "high"

    @dataclass
    class Point:
        x: int
        y: float = 0.5

    class Row(TypedDict, total=False):
        name: str
        points: NotRequired[list[Point]]

    class Pair(NamedTuple):
        left: str
        right: int

    @tool(timeout=30)
    async def many(
        a: int, b: float, c: bool, d: bytes, e: None, f: Any, g: date, h: datetime, i: time, j: Decimal, k: UUID,
        m: Path, n: list[int], o: set[str], p: tuple[int, str], q: tuple[()], r: dict[str, int], s: Level, t: Point,
        u: Row, v: Pair, w: Optional[Union[int, str]], x: Literal["a", 1, None, True],
        y: Annotated[int, "how many"], z: list = [1], aa: Unknown = None, *rest, bb: dict = {"é": 1.5},
    ) -> list[Row]:
        """Do much.

        Args:
            a: a number
            zz: nothing
        """

    @tool
    async def returns_pair(point: Point) -> Pair: ...
'''
MARKED = """
    from typing import Annotated
    from sideband.skill import FromHost, tool

    @tool
    async def written(text: str, by: Annotated[str, FromHost("principal")]) -> str: ...
"""
GIVEN = {
    "a": "1", "b": "1.5", "c": "true", "d": "YQ==", "e": "null", "f": [1], "g": "2025-01-31",
    "h": "2025-01-31T12:00:00", "i": "12:00:00", "j": "1.10", "k": "12345678123456781234567812345678",
    "m": "a/b", "n": "[1, 2]", "o": ["a", "a"],
    "p": [1, "b"], "q": [], "r": {"a": 1}, "s": "high", "t": {"x": 1}, "u": {"points": [{"x": 1, "y": 2}]},
    "v": {"left": "a", "right": 2}, "w": "text", "x": "true", "y": 3, "bb": "{}",
}  # fmt: skip


def cache_files(home):
    return sorted(path for path in (home / "cache").glob("skills-*"))


def tools(loaded):
    return [tool.full_name for skill in loaded.skills for tool in skill.tools]


@pytest.mark.usefixtures("settled")
def test_second_load_of_200_skills_opens_no_file(skills, make, load_cached, opened):
    for number in range(200):
        make(f"demo-{number}", files={"references/a.md": "text", "helper.py": "x = 1"})
    first = load_cached(skills)
    assert len(opened) >= 600
    opened.clear()
    assert load_cached(skills) == first
    assert opened == [], "a skill that did not change is read again: what does its parse depend on?"


@pytest.mark.usefixtures("settled")
def test_second_load_needs_few_calls_per_skill(skills, make, load_cached, count_calls, home):
    for number in range(200):
        make(f"demo-{number}", files={"references/a.md": "text"})
    load_cached(skills)
    sources = SkillSources(folders=(skills,), home=home)
    calls = count_calls(lambda: _folder_loader._load(sources, Meter()))
    assert calls < 23_000, "look for work that is repeated for each file of a skill that is not parsed"


@pytest.mark.usefixtures("settled")
def test_loads_with_and_without_the_cache_are_equal(skills, make_skill, make, load_cached, *, opened, tmp_path):
    make("plain", more="x: 1\nmetadata: {sideband.capabilities: 'http:host=api.test shell', é: ü}\n")
    make("many", more="timeout: 5\nmetadata: {sideband.memory: 512M, sideband.isolation: call, sideband.resume: ask}\n")
    make_skill("typed", {"tools.py": TYPES, "scripts/more.py": TOOL.format(name="more"), "wrong.py": "sideband ("})
    make_skill("marked", {"tools.py": MARKED})
    make_skill("script", {"a.py": '# /// script\n# requires-python = ">=3.11"\n# dependencies = ["numpy>=2"]\n# ///\n'})
    make_skill("both", {"skill.yaml": "name: other\nscenarios: [a, b]\n"})
    make_skill("yaml-only", {"skill.yaml": "name: yaml-only\ninstructions: Text\n"}, manifest=None)
    make_skill("lines", manifest="---\nname: lines\ndescription: a: b\nallowed-tools: Bash(git:*) Read\n---\nText\n")
    make_skill("without", manifest="\n\nA paragraph with \u2028 and \x00 and \x0b.\r\n\r\nMore")
    make_skill("wide", manifest="---\nname: wide\ndescription: x\n---\nText".encode("utf-16"))
    make_skill("latin", manifest=b"---\nname: latin\ndescription: \xe9\n---\n")
    make_skill("every", {"tools.py": "from sideband.skill import *\n"})
    linked = make_skill("linked", {"a.py": TOOL.format(name="one")})
    (linked / "b.py").symlink_to("a.py")
    (linked / "out.md").symlink_to(tmp_path / "elsewhere")
    without = load_cached(skills, home=None)
    assert load_cached(skills) == without
    opened.clear()
    cached = load_cached(skills)
    assert cached == without
    assert opened == []
    for one, other in zip(cached.skills, without.skills, strict=True):
        for tool, plain in zip(one.tools, other.tools, strict=True):
            assert (tool.validate.form, tool.validate_result) == (plain.validate.form, plain.validate_result)
    typed = next(tool for skill in cached.skills for tool in skill.tools if tool.name == "many")
    plain = next(tool for skill in without.skills for tool in skill.tools if tool.name == "many")
    assert typed.validate(GIVEN) == plain.validate(GIVEN)
    with pytest.raises(ValueError, match=r"unknown argument `bbb` \(did you mean `bb`\?\)"):
        typed.validate({**GIVEN, "bbb": 1})


def rewrite_tool(folder):
    (folder / "run.py").write_text(TOOL.format(name="new"))


def rewrite_keeping_size_and_time(folder):
    before = (folder / "run.py").stat()
    (folder / "run.py").write_text(TOOL.format(name="fun"))
    os.utime(folder / "run.py", ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_keeping_size_and_time(folder):
    before = (folder / "run.py").stat()
    (folder / "other").write_text(TOOL.format(name="fun"))
    os.utime(folder / "other", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "other").replace(folder / "run.py")


def add_tool(folder):
    (folder / "more.py").write_text(TOOL.format(name="more"))


def remove_tool(folder):
    (folder / "run.py").unlink()


def rewrite_manifest(folder):
    (folder / "SKILL.md").write_text(MANIFEST.format(name="demo", text="Other.", more=""))


def request_capability(folder):
    more = "metadata: {sideband.capabilities: shell}\n"
    (folder / "SKILL.md").write_text(MANIFEST.format(name="demo", text="Does it.", more=more))


def rename_skill(folder):
    (folder / "SKILL.md").write_text(MANIFEST.format(name="other", text="Does it.", more=""))


def rename_folder(folder):
    folder.rename(folder.with_name("moved"))


def swap_folder(folder):
    folder.rename(folder.parents[1] / "away")
    folder.mkdir()
    (folder / "SKILL.md").write_text(MANIFEST.format(name="demo", text="Swapped.", more=""))


def add_yaml(folder):
    (folder / "skill.yaml").write_text("license: MIT\n")


def add_reference(folder):
    (folder / "references").mkdir()
    (folder / "references" / "a.md").write_text("text")


def add_link_out(folder):
    (folder / "out.md").symlink_to("/etc/hostname")


def hide_manifest(folder):
    (folder / "SKILL.md").rename(folder / "skill.md")


def remove_skill(folder):
    (folder / "SKILL.md").unlink()


@pytest.mark.parametrize(
    "change",
    [
        rewrite_tool,
        rewrite_keeping_size_and_time,
        replace_keeping_size_and_time,
        add_tool,
        remove_tool,
        rewrite_manifest,
        request_capability,
        rename_skill,
        rename_folder,
        swap_folder,
        add_yaml,
        add_reference,
        add_link_out,
        hide_manifest,
        remove_skill,
    ],
)
@pytest.mark.usefixtures("settled")
def test_change_is_seen_at_once(skills, make, load_cached, change):
    make("other-skill")
    folder = make()
    before = load_cached(skills)
    assert load_cached(skills) == before
    change(folder)
    after = load_cached(skills)
    assert after == load_cached(skills, home=None)
    assert after != before
    assert load_cached(skills) == after


@pytest.mark.usefixtures("settled")
def test_changed_skill_is_stored_again_and_the_others_are_kept(skills, make, load_cached, opened):
    make("a")
    rewrite_manifest(make())
    load_cached(skills)
    rewrite_tool(skills / "demo")
    opened.clear()
    load_cached(skills)
    assert {path.partition("/")[0] for path in opened} == {"demo"}
    opened.clear()
    load_cached(skills)
    assert opened == []


@pytest.mark.parametrize("modified", [None, 0])
def test_file_that_has_just_changed_is_not_trusted(skills, make, load_cached, *, opened, home, modified):
    for file in make().iterdir():
        # the time of the content can be set, but not that of the status
        os.utime(file, None if modified is None else (modified, modified))
    load_cached(skills)
    assert cache_files(home) == []
    opened.clear()
    assert tools(load_cached(skills)) == ["demo.run"]
    assert opened


@pytest.mark.usefixtures("settled")
def test_file_with_a_time_in_the_future_is_not_trusted(skills, make, load_cached, home):
    folder = make()
    os.utime(folder / "run.py", ns=(0, time_ns() + 10 * LATER))
    load_cached(skills)
    assert cache_files(home) == []


@pytest.mark.usefixtures("settled")
def test_origin_and_precedence_are_not_taken_from_the_cache(skills, make, load_cached):
    folder = make()
    assert load_cached(folder).skills[0].origin == "folder"
    project = load_cached(project_folders=(folder,))
    assert project.skills[0].origin == "project"
    assert load_cached(skills, project_folders=(folder,)).skills[0].origin == "folder"


@pytest.mark.usefixtures("settled")
def test_copies_and_duplicates_are_found_among_cached_skills(make_skill, load_cached, codes, tmp_path):
    same = {"run.py": TOOL.format(name="run")}
    one = make_skill("demo", same, parent=tmp_path / "one")
    copy = make_skill("demo", same, parent=tmp_path / "copy")
    other = make_skill("demo", {"run.py": TOOL.format(name="other")}, parent=tmp_path / "other")
    for folder in (one, copy, other):
        load_cached(folder)
    loaded = load_cached(one, copy, other)
    assert loaded == load_cached(one, copy, other, home=None)
    assert codes(loaded.problems) == ["duplicate"]
    assert str(other) in loaded.problems[0].reason
    assert str(copy) not in loaded.problems[0].reason


@pytest.mark.usefixtures("settled")
def test_skipped_skills_are_reported_at_each_load(skills, make_skill, make, load_cached, codes):
    make_skill("inner", parent=make() / "references")
    make_skill("demo-2", parent=skills / ".hidden")
    for _ in range(2):
        loaded = load_cached(skills)
        assert codes(loaded.problems) == ["source.skipped"]
        assert "2 skills" in loaded.problems[0].reason


@pytest.mark.usefixtures("settled")
def test_failing_skill_is_reported_at_each_load(skills, make, load_cached, codes):
    make()
    make("broken", files={"run.py": '# /// script\n# dependencies = ["-e ."]\n# ///\n'})
    for _ in range(3):
        loaded = load_cached(skills)
        assert (tools(loaded), codes(loaded.problems)) == (["demo.run"], ["requirement.direct"])


@pytest.mark.usefixtures("settled")
def test_unreadable_file_is_tried_again(skills, make, load_cached, home, monkeypatch):
    folder = make()
    original = os.open

    def failing(path, *arguments, **options):
        if str(path) == str(folder / "run.py"):
            raise OSError(24, "Too many open files")
        return original(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        assert tools(load_cached(skills)) == []
    assert tools(load_cached(skills)) == ["demo.run"]


@pytest.mark.usefixtures("settled")
def test_skill_of_a_package_is_not_cached(make, load_cached, home):
    folder = make()
    package = SkillPackage("demo", folder, "missing-distribution", "1")
    assert tools(load_cached(packages=(package,))) == ["demo.run"]
    assert cache_files(home) == []
    load_cached(folder)
    renamed = SkillPackage("other", folder, "missing-distribution", "1")
    loaded = load_cached(packages=(renamed,))
    assert loaded == load_cached(packages=(renamed,), home=None)
    assert "entry point" in loaded.skills[0].problems[0].reason


@pytest.mark.usefixtures("settled")
def test_skill_with_text_that_cannot_be_encoded_is_parsed_each_time(skills, make, load_cached):
    make()
    make("odd", files={"odd.py": TOOL.format(name="odd").replace("Do it.", r"\ud800")})
    for _ in range(2):
        assert tools(load_cached(skills)) == ["demo.run", "odd.odd", "odd.run"]


@pytest.mark.usefixtures("settled")
def test_limits_are_part_of_the_key(skills, make, load_cached, codes):
    make(files={"big.py": "import sideband\n" + "x = 1\n" * 1_000})
    assert tools(load_cached(skills)) == ["demo.run"]
    assert codes(load_cached(skills, limits=Config(nodes=100)).problems) == ["limit.nodes"]


@pytest.mark.usefixtures("settled")
def test_limit_of_text_applies_to_cached_skills(skills, make, load_cached, codes):
    for name in "abc":
        make(name, more="unknown: key\n", files={f"references/{200 * name}.md": "text"})
    loaded = []
    for most in range(1, 2_500, 150):
        first = load_cached(skills, limits=Config(total_text=most))
        assert load_cached(skills, limits=Config(total_text=most)) == first
        loaded.append(len(first.skills))
        assert codes(first.problems) == ([] if len(first.skills) == 3 else ["limit.total_text"])
    assert set(loaded) == {0, 1, 2, 3}
