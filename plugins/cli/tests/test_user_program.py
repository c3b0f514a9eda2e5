"""Commands that a user types after ``!`` are split as a shell does, but no shell interprets them."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband import UsageError
from sideband_cli._chat._user_program import split_command


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=8), max_size=6))
def test_quoted_arguments_arrive_unchanged(arguments):
    assert split_command(shlex.join(arguments)) == arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (" git  status ", ["git", "status"]),
        ("echo 'a b' \"c 'd'\" e\\ f", ["echo", "a b", "c 'd'", "e f"]),
        ("grep 'a|b*' \\*.txt \"x;y\"", ["grep", "a|b*", "*.txt", "x;y"]),
        ('echo "\\" a"', ["echo", '" a']),
        ("", []),
    ],
)
def test_command_is_split_at_spaces_outside_quotes(text, arguments):
    assert split_command(text) == arguments


@pytest.mark.parametrize(
    "text",
    [
        *("a | b", "a && b", "a; b", "a > b", "a < b", "(a)", "a $HOME", "a `b`", "a *.txt", "a ?.txt", "a [b]"),
        *("a {b,c}", "a ~", "a\nb", 'a "$HOME"', 'a "`b`"', 'a "\\$HOME"'),
    ],
)
def test_what_only_a_shell_does_is_refused(text):
    with pytest.raises(UsageError, match="needs a shell") as caught:
        split_command(text)
    assert f"!sh -c {shlex.quote(text)}" in caught.value.hint


def test_open_quote_is_refused():
    with pytest.raises(UsageError, match="the command is incomplete: no closing quotation"):
        split_command("echo 'a")
