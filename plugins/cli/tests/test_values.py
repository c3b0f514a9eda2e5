"""Arguments of the forms `key=value`, `key:=JSON` and `--input FILE`, and tables."""

from argparse import ArgumentParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband import UsageError
from sideband_cli._agent._options import add_agent_options
from sideband_cli._arguments._key_values import read_values
from sideband_cli._terminal._tables import format_table


def test_value_after_colon_equals_is_json_and_otherwise_text():
    assert read_values(["a=1", "b:=[1, 2]", "c=x=y", "d="]) == {"a": "1", "b": [1, 2], "c": "x=y", "d": ""}


def test_values_on_the_command_line_override_those_of_a_file(tmp_path):
    file = tmp_path / "values.json"
    file.write_text('{"a": 1, "b": 2}')
    assert read_values(["a=3"], str(file)) == {"a": "3", "b": 2}


@pytest.mark.parametrize(
    ("words", "problem"),
    [(["a"], "key=value"), (["=1"], "key=value"), (["a:={"], "not valid JSON"), (["a=1", "a=2"], "duplicate.*`a`")],
)
def test_invalid_argument_is_named(words, problem):
    with pytest.raises(UsageError, match=problem):
        read_values(words)


@pytest.mark.parametrize(
    ("text", "problem"), [("[1]", "expected a JSON object"), ("{", "not valid JSON"), (None, "No such file")]
)
def test_unreadable_input_file_is_an_error(tmp_path, text, problem):
    file = tmp_path / "values.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=problem):
        read_values([], str(file))


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=4))
def test_table_has_one_line_for_each_row_and_no_control_characters(rows):
    text = format_table(["a", "b"], rows)
    assert len(text.split("\n")) == len(rows) + 2
    assert not [character for character in text if ord(character) < 32 and character != "\n"]


def test_table_is_not_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, format_table(["a", "b"], [["x" * 100, "y" * 100]]).splitlines())) <= 40


@pytest.mark.parametrize("listed", [True, False])
def test_help_lists_json_only_where_it_is_supported(listed):
    parser = ArgumentParser()
    add_agent_options(parser, json=listed)
    assert ("--json" in parser.format_help()) is listed
    assert parser.parse_args(["--json"]).json
