"""Markdown with styles: nothing is hidden, whatever the text is, and nothing but styles is added."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.rendering import render
from sideband_cli._terminal._columns import columns
from sideband_cli._terminal._markdown import MarkdownText

STYLES = re.compile(r"\x1b\[[0-9;]*m")
WORDS = re.compile(r"[a-z漢]+")
PIECES = [
    "a",
    "bc",
    " ",
    "  ",
    "\n",
    "*",
    "**",
    "`",
    "```",
    "~~",
    "#",
    "# ",
    "- ",
    "1. ",
    "> ",
    "|",
    "|a|b|\n",
    "|-|-|\n",
]
PIECES += ["```python\n", "~~~\n", "<!--", "-->", "[a](b)", "[a]: b", "漢", '"""', "\\", "_", "|a|b|\n", "|-|-|\n"]
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def lines_of(text, width=20, cuts=()):
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    shown = MarkdownText(lambda: width)
    lines = [line for begin, end in itertools.pairwise(places) for line in shown.feed(text[begin:end])]
    return [*lines, *shown.end()]


@given(texts)
def test_no_word_is_hidden(text):
    shown = "\n".join(STYLES.sub("", line) for line in lines_of(text, 1_000))
    assert "".join(WORDS.findall(shown)) == "".join(WORDS.findall(text))


@given(texts, st.lists(st.integers(0, 100)))
def test_lines_do_not_depend_on_where_the_text_is_split(text, cuts):
    assert lines_of(text, cuts=cuts) == lines_of(text)


@given(texts, st.integers(2, 30))
def test_each_line_fits(text, width):
    assert all(columns(STYLES.sub("", line).expandtabs(1)) <= width for line in lines_of(text, width))


@given(st.text())
def test_nothing_but_styles_is_added(text):
    assert not {"\x1b", "\x9b", "\r"} & {*"".join(STYLES.sub("", line) for line in lines_of(render(text, prose=True)))}


@given(texts)
def test_each_line_ends_without_a_style(text):
    for line in lines_of(text):
        assert ["", *STYLES.findall(line)][-1] in ("", "\x1b[0m")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# One", ["\x1b[1;34mOne\x1b[0m"]),
        ("a **b** *c* `d` ~~e~~", ["a \x1b[1mb\x1b[0m \x1b[3mc\x1b[0m \x1b[36md\x1b[0m \x1b[9me\x1b[0m"]),
        ("2 * 3 * 4 and a_b_c", ["2 * 3 * 4 and a_b_c"]),
        ("[text](http://evil.example) <b>", ["[text](http://evil.e", "xample) <b>"]),
        ("- one two three four five", ["• one two three four", "  five"]),
        ("> quoted", ["\x1b[3m> quoted\x1b[0m"]),
        ("```python\ndef f", ["\x1b[2m```python\x1b[0m", "\x1b[35mdef\x1b[0m \x1b[34mf\x1b[0m"]),
        ("```\n# a\n```\n# b", ["\x1b[2m```\x1b[0m", "# a", "\x1b[2m```\x1b[0m", "\x1b[1;34mb\x1b[0m"]),
    ],
)
def test_style_is_shown_in_place_of_its_marks(text, shown):
    assert lines_of(text) == shown


def test_columns_of_a_table_are_aligned():
    shown = [STYLES.sub("", line) for line in lines_of("|a|b|\n|-|:-:|\n|`one`|2|\n")]
    assert shown == ["| a   | b |", "|-----|---|", "| one | 2 |"]


def test_table_that_does_not_fit_is_shown_as_it_is():
    text = "| a | b |\n|---|---|\n| a long cell | and another |\n"
    assert "".join(STYLES.sub("", line) for line in lines_of(text)).replace(" ", "") == text.replace(" ", "").replace(
        "\n", ""
    )


def test_block_in_an_unknown_language_has_no_colors():
    assert lines_of("```no_such_lexer\ndef f\n")[1] == "def f"


def test_incomplete_line_is_shown_as_it_is():
    shown = MarkdownText(lambda: 20)
    assert shown.feed("- **one") == []
    assert shown.preview == ["- **one"]
    assert shown.feed("** two\n") == ["• \x1b[1mone\x1b[0m two"]
    assert shown.preview == []


def test_line_without_an_end_is_shown_in_parts():
    shown = MarkdownText(lambda: 20)
    assert len(shown.feed("x" * 9_000)) == 450


def test_tabs_have_the_width_that_is_shown():
    lines = lines_of("```go\n\tone\n\t\ttwo three\n```\nfour\tfive\n", 16)
    assert [STYLES.sub("", line) for line in lines] == [
        "```go",
        "    one",
        "        two",
        "three",
        "```",
        "four    five",
    ]


def test_escaped_mark_is_not_a_style():
    assert lines_of(r"\*one\* \`two\` *three*", 40) == ["\\*one\\* \\`two\\` \x1b[3mthree\x1b[0m"]


def test_escaped_bars_and_empty_first_cells_keep_the_columns_of_a_table():
    lines = lines_of("|a\\|b|c|\n|-|-|\n||d|\n")
    assert [STYLES.sub("", line) for line in lines] == ["| a\\|b | c |", "|------|---|", "|      | d |"]
