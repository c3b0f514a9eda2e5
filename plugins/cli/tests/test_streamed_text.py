"""Streamed text: cleaning does not depend on where the text is split, and every line fits the terminal."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from sideband_cli._terminal._streamed_text import LineBreaker, StreamRenderer

texts = st.text(alphabet=st.sampled_from("ab \n\r\x1b\x9b[31m\u202e\u2066\x07\x00é漢"), max_size=80)


def pieces_of(text, cuts):
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[begin:end] for begin, end in itertools.pairwise(places)]


def columns(text):
    return sum(2 if character == "漢" else 1 for character in text)


@given(texts, st.lists(st.integers(0, 100)))
def test_control_characters_are_removed_wherever_the_text_is_split(text, cuts):
    renderer = StreamRenderer()
    shown = "".join(renderer.feed(piece) for piece in pieces_of(text, cuts))
    assert not set("\r\x1b\x9b\u202e\u2066\x07\x00") & set(shown)


@given(texts, st.lists(st.integers(0, 100)))
def test_cleaning_does_not_depend_on_where_the_text_is_split(text, cuts):
    renderer, whole = StreamRenderer(), StreamRenderer()
    assert "".join(map(renderer.feed, pieces_of(text, cuts))) == whole.feed(text)


@given(st.text(alphabet="ab漢 \n", max_size=80), st.lists(st.integers(0, 100)), st.integers(2, 20))
def test_lines_fit_and_no_word_is_lost(text, cuts, width):
    breaker = LineBreaker(lambda: width)
    lines = [line for piece in pieces_of(text, cuts) for line in breaker.feed(piece)]
    lines += breaker.end()
    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_line_breaks_at_a_space():
    breaker = LineBreaker(lambda: 10)
    assert breaker.feed("one two three") == ["one two"]
    assert breaker.rest == "three"


def test_word_wider_than_a_line_is_split():
    breaker = LineBreaker(lambda: 4)
    assert breaker.feed("abcdefghij") == ["abcd", "efgh"]
    assert breaker.end() == ["ij"]
    assert breaker.end() == []
