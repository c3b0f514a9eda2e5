"""What `allowed-tools` of a command means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_prompt._commands._command_file import parse_command
from sideband_prompt._commands._tool_limits import is_allowed, limited_tools


@pytest.mark.parametrize(
    ("allowed", "tool", "arguments", "expected"),
    [
        ("Read", "read", {}, True),
        ("Read", "write", {}, False),
        ("Bash", "command", {"command": "rm -r x"}, True),
        ("Bash(git log:*)", "command", {"command": "git log -3"}, True),
        ("Bash(git log:*)", "command", {"command": "git push"}, False),
        ("Bash(git log:*)", "command", {"command": "git log; rm x"}, False),
        ("Bash(git status)", "command", {"command": "git status -s"}, False),
        ("Read(src/**)", "read", {}, False),
        ("mcp__github__issue", "github.issue", {}, True),
        ("mcp__github__issue", "github.push", {}, False),
        ("mcp__github", "github.push", {}, True),
        ("mcp__github", "githubs.push", {}, False),
        ("github__issue", "github.issue", {}, True),
        ("Task", "subagent", {}, False),
        ("*", "read", {}, False),
        ("[a-z]*", "read", {}, False),
        ("", "tool_expand_tools", {}, True),
    ],
)
def test_entry_allows_exactly_its_tools(allowed, tool, arguments, expected):
    tools, _ = limited_tools([allowed])
    assert is_allowed(tools, tool, arguments) is expected


@pytest.mark.parametrize(
    "head",
    [
        "allowed-tools: Read, Bash(git add:*), Bash(git commit -m *)",
        "allowed-tools: [Read, 'Bash(git add:*)', \"Bash(git commit -m *)\"]",
        "allowed-tools:\n  - Read\n  - Bash(git add:*)\n  - Bash(git commit -m *)",
    ],
)
def test_entries_are_read_in_each_notation(head, tmp_path):
    found = parse_command("x", tmp_path / "x.md", f"---\n{head}\nmodel: x\n---\nGo.".encode())
    assert found.allowed == ("Read", "Bash(git add:*)", "Bash(git commit -m *)")


@pytest.mark.parametrize(
    ("written", "tools", "unknown"),
    [
        ("Read, Bash(git diff", ["read"], ["Bash(git diff"]),
        ("Bash(git diff:*), Bash(", ["command(git diff *)"], ["Bash("]),
        ("Bash (git diff)", ["command(git diff)"], []),
        ("Read  # not Bash", ["read"], []),
        ("# Bash", [], []),
    ],
)
def test_mistake_in_the_notation_allows_no_more_tools(written, tools, unknown, tmp_path):
    found = parse_command("x", tmp_path / "x.md", f"---\nallowed-tools: {written}\n---\nGo.".encode())
    assert limited_tools(found.allowed) == (tools, unknown)


def test_empty_entry_allows_nothing_and_a_missing_one_limits_nothing(tmp_path):
    assert parse_command("x", tmp_path / "x.md", b"---\nallowed-tools:\n---\nGo.").allowed == ()
    assert parse_command("x", tmp_path / "x.md", b"---\nmodel: x\n---\nGo.").allowed is None


@given(st.binary(max_size=200) | st.text(alphabet="-\n:[]' ax$1", max_size=80).map(str.encode))
def test_any_file_is_a_command(content):
    from pathlib import Path

    found = parse_command("x", Path("x.md"), content)
    assert "\n" not in found.summary + found.usage
    assert isinstance(found.expanded("a b"), str)
