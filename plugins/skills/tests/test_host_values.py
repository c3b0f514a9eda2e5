"""Parameters of tools that the host fills in."""

import pytest

BEFORE = "from typing import Annotated, Optional\nfrom sideband.skill import FromHost\n"
SIGNATURE = (
    '(text: str, by: Annotated[str, "the author", FromHost("principal")], '
    '*, session: Annotated[str | None, FromHost("session")] = None, more: int = 1)'
)


def test_parameter_of_the_host_is_in_no_schema(load_tool):
    tool, skill = load_tool(SIGNATURE, before=BEFORE)
    assert skill.problems == ()
    assert tool.from_host == {"by": "principal", "session": "session"}
    assert list(tool.parameters["properties"]) == ["text", "more"]
    assert tool.parameters["required"] == ["text"]
    assert tool.signature == "run(text: str, *, more: int=1)"
    assert tool.validate({"text": "a", "by": "ada", "session": None}) == {"text": "a", "by": "ada", "session": None}
    with pytest.raises(ValueError, match=r"unknown argument `sesion`$"):
        tool.validate({"text": "a", "by": "ada", "sesion": "s"})
    with pytest.raises(ValueError, match="`by` is required"):
        tool.validate({"text": "a"})


@pytest.mark.parametrize("mark", ["sideband.skill.FromHost", "s.FromHost", "FromHost"])
def test_mark_is_found_with_any_import(load_tool, mark):
    before = "import sideband.skill\nimport sideband.skill as s\nimport typing as t\nfrom sideband.skill import *\n"
    tool, _ = load_tool(f'(by: t.Annotated[str, {mark}("channel")])', before=before)
    assert tool.from_host == {"by": "channel"}


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        ('Annotated[str, FromHost("user")]', "FromHost('user')\" is not a known value of the host"),
        ("Annotated[str, FromHost(name)]", "'FromHost(name)' is not a known value of the host"),
        ('Annotated[str, FromHost(value="principal")]', "is not a known value of the host"),
        ('Optional[Annotated[str, FromHost("session")]]', "`FromHost` must mark the whole parameter `by`"),
        ('list[Annotated[str, FromHost("session")]]', "`FromHost` must mark the whole parameter `by`"),
        ("'Annotated[str, FromHost(\"session\")]'", "`FromHost` must mark the whole parameter `by`"),
        ("Author", "`FromHost` must mark the whole parameter `by`"),
        ("Annotated[str, MARK]", "`FromHost` must mark the whole parameter `by`"),
        ('Annotated[str, FromHost("session"), FromHost("principal")]', "must mark the whole parameter `by`"),
        ('str = FromHost("principal")', "`FromHost` must mark the whole parameter `by`"),
        ('Annotated[str, "who"] = FromHost("principal")', "`FromHost` must mark the whole parameter `by`"),
        ("str = MARK", "`FromHost` must mark the whole parameter `by`"),
    ],
)
def test_tool_with_a_mark_that_callers_could_circumvent_is_refused(load_one, annotation, problem):
    more = 'Author = Annotated[str, FromHost("principal")]\nMARK = FromHost("principal")\n'
    code = f"{BEFORE}from sideband.skill import tool\n{more}\n@tool\nasync def run(by: {annotation}): ...\n"
    skill = load_one(files={"run.py": code})
    (found,) = [one for one in skill.problems if one.fatal]
    assert skill.tools == ()
    assert found.code == "skill.tool.refused"
    assert problem in found.reason
    assert found.hint


MARKS = f"{BEFORE}Author = Annotated[str, FromHost('principal')]\nMARK = FromHost('principal')\nMark = FromHost\n"


@pytest.mark.parametrize(
    ("imported", "annotation"),
    [
        ("from marks import Author", "Author"),
        ("import marks", "marks.Author"),
        ("from marks import MARK", "Annotated[str, MARK]"),
        ("import marks", "Annotated[str, marks.MARK]"),
        ("from marks import Mark", 'Annotated[str, Mark("principal")]'),
        ("from marks import Author", "Author | None"),
        ("from sideband.skill import FromHost; Mark = FromHost", 'Annotated[str, Mark("principal")]'),
        ("from marks import MARK; OTHER = MARK", "Annotated[str, OTHER]"),
    ],
)
def test_tool_whose_annotation_may_hide_a_mark_is_refused(load_one, imported, annotation):
    code = f"from typing import Annotated\nfrom sideband.skill import tool\n{imported}\n\n"
    skill = load_one(files={"marks.py": MARKS, "run.py": f"{code}@tool\nasync def run(by: {annotation}): ...\n"})
    assert skill.tools == ()
    (found,) = [one for one in skill.problems if one.fatal]
    assert found.code == "skill.tool.refused"
    assert "which may be a `FromHost`" in found.reason


def test_unknown_annotation_is_accepted_in_a_skill_without_marks(load_tool):
    tool, skill = load_tool("(by: Annotated[str, NOTE], other: Other)", before="from typing import Annotated")
    assert list(tool.parameters["properties"]) == ["by", "other"]
    assert not [one for one in skill.problems if one.fatal]
