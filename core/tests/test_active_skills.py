"""The tools that active skills pre-approve, and how many skills are active."""

import pytest
from sideband.active_skills import active_skills, mapped_tools, pre_approvals
from sideband.messages import TextPart, ToolResultMessage, UserMessage


def allowed_by_skill(*arguments):
    return next((one.skill for one in pre_approvals(*arguments)), None)


def shown(name, *allowed, size=100, tool="skill", **more):
    metadata = {"skill": name, "allowed_tools": [*allowed]}
    return ToolResultMessage(call=name, tool=tool, content=(TextPart(text="x" * size),), metadata=metadata, **more)


@pytest.mark.parametrize(
    ("entry", "tools"),
    [
        ("Read", ("read",)),
        ("Write", ("write",)),
        ("Edit", ("edit",)),
        ("MultiEdit", ("edit",)),
        ("Glob", ("glob",)),
        ("Grep", ("grep",)),
        ("LS", ("list",)),
        ("WebFetch", ("fetch",)),
        ("WebSearch", ("search",)),
        ("TodoWrite", ("todo",)),
        ("Task", ("subagent",)),
        ("Bash", ("command",)),
        ("Bash(*)", ("command",)),
        ("Bash(git:*)", ("command(git *)",)),
        ("Bash(git add:*)", ("command(git add *)",)),
        ("Bash(npm run test)", ("command(npm run test)",)),
    ],
)
def test_names_of_the_format_are_those_of_tools_here(entry, tools):
    assert mapped_tools([entry]) == (tools, ())


@pytest.mark.parametrize(
    "entry",
    ["NotebookEdit", "mcp__x__y", "Read(src/**)", "Bash(git*)", "Bash(a; b)", "Bash($(x):*)", "Bash(a=b c)", "((", ""],
)
def test_entries_without_an_equal_meaning_are_not_mapped(entry):
    assert mapped_tools([entry]) == ((), (entry,))


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["git", "status"], True),
        (["git"], True),
        (["bash", "-c", "git commit -m 'a b'"], True),
        (["bash", "-c", "exec 2>&1; git status"], True),
        (["bash", "-c", "exec 2>&1; exec 2>&1; git status"], False),
        (["bash", "-c", "git status; rm -rf /"], False),
        (["bash", "-c", "git status\nrm x"], False),
        (["bash", "-c", "git $(rm x)"], False),
        (["bash", "-c", "git `rm x`"], False),
        (["bash", "-c", "git status > /etc/x"], False),
        (["bash", "-c", "PATH=. git status"], False),
        (["bash", "-c", "git 'a"], False),
        (["bash", "-c", "git status", "x"], False),
        (["bash", "git"], False),
        (["gitx", "status"], False),
        (["./git", "status"], False),
        (["rm", "git"], False),
        ([], False),
    ],
)
def test_pattern_allows_one_program_and_no_other(words, allowed):
    messages = [shown("release", "command(git *)")]
    assert allowed_by_skill(messages, "command", words) == ("release" if allowed else None)


def test_exact_command_allows_no_more_arguments():
    messages = [shown("release", "command(npm run test)")]
    assert allowed_by_skill(messages, "command", ["npm", "run", "test"]) == "release"
    assert allowed_by_skill(messages, "command", ["npm", "run", "test", "x"]) is None


def test_only_listed_tools_are_allowed():
    assert allowed_by_skill([shown("release", "edit")], "edit") == "release"
    assert allowed_by_skill([shown("release", "edit")], "write") is None
    assert allowed_by_skill([shown("release")], "edit") is None
    assert allowed_by_skill([], "edit") is None


def test_results_of_other_tools_and_errors_allow_nothing():
    assert allowed_by_skill([shown("release", "edit", tool="evil")], "edit") is None
    assert allowed_by_skill([shown("release", "edit", is_error=True)], "edit") is None


def test_active_skills_have_18_000_tokens_together_and_the_oldest_are_not_active():
    messages = [shown(name, "edit", size=28_000) for name in ("a", "b", "c")]
    assert [one.call for one in active_skills(messages)] == ["c", "b"]


def test_skill_that_is_not_active_allows_nothing():
    messages = [shown("a", "edit"), shown("b", size=40_000), shown("c", size=40_000)]
    assert allowed_by_skill(messages, "edit") is None


def test_newest_skill_is_active_whatever_its_size():
    messages = [shown("a"), shown("b", size=400_000), UserMessage(content="go")]
    assert [one.call for one in active_skills(messages)] == ["b"]


def test_version_that_was_read_last_counts():
    assert allowed_by_skill([shown("a", "edit"), shown("a")], "edit") is None
