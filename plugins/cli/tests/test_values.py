"""Arguments as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband import UsageError
from sideband_cli._arguments._key_values import read_values
from sideband_cli._terminal._tables import format_table


def test_values_are_text_and_what_follows_a_colon_is_json():
    assert read_values(["a=1", "b:=[1, 2]", "c=x=y", "d="]) == {"a": "1", "b": [1, 2], "c": "x=y", "d": ""}


def test_values_on_the_command_line_win_over_those_of_a_file(tmp_path):
    file = tmp_path / "values.json"
    file.write_text('{"a": 1, "b": 2}')
    assert read_values(["a=3"], str(file)) == {"a": "3", "b": 2}


@pytest.mark.parametrize(
    ("words", "problem"),
    [(["a"], "not key=value"), (["=1"], "not key=value"), (["a:={"], "not JSON"), (["a=1", "a=2"], "given twice")],
)
def test_a_word_that_can_not_be_read_is_named(words, problem):
    with pytest.raises(UsageError, match=problem):
        read_values(words)


@pytest.mark.parametrize(
    ("text", "problem"), [("[1]", "not a JSON object"), ("{", "is not JSON"), (None, "No such file")]
)
def test_a_file_that_can_not_be_read_is_named(tmp_path, text, problem):
    file = tmp_path / "values.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=problem):
        read_values([], str(file))


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=4))
def test_a_table_has_one_line_for_each_row_and_moves_no_cursor(rows):
    text = format_table(["a", "b"], rows)
    assert len(text.split("\n")) == len(rows) + 2
    assert not [character for character in text if ord(character) < 32 and character != "\n"]


def test_a_table_is_not_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, format_table(["a", "b"], [["x" * 100, "y" * 100]]).splitlines())) <= 40
