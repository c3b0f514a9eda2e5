import fnmatch
from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st
from sideband_tools._output_search import excerpt, search

LETTERS = st.text("aAbB\n", max_size=40)


def found(text, pattern):
    return [text[match.start : match.end] for match in search(text, pattern)]


@given(LETTERS, st.text("ab*", min_size=1, max_size=5).filter(lambda text: text.strip("*")))
def test_line_matches_exactly_if_fnmatch_does(text, pattern):
    fits = [fnmatch.fnmatchcase(line.lower(), f"*{pattern}*") for line in text.split("\n")]
    lines = {text.count("\n", 0, match.start) for match in search(text, pattern)}
    assert lines == {number for number, fitting in enumerate(fits) if fitting}


@given(LETTERS, st.text("ab*\n", max_size=5))
def test_matches_are_ordered_and_do_not_overlap(text, pattern):
    at = 0
    for match in search(text, pattern):
        assert match.start >= at
        assert match.end > match.start
        at = match.end


def test_empty_pattern_has_no_matches():
    assert found("abc", "*") == []


def test_pattern_with_newlines_spans_lines():
    assert found("a\nb a\nb", "a\nb") == ["a\nb", "a\nb"]
    assert found("\nx1\nx2q", "\nx*q") == ["\nx2q"]


def test_letters_longer_in_lower_case_keep_their_positions():
    assert found("İİİ Error", "error") == ["Error"]


def test_excerpt_stays_in_its_line_and_is_short():
    text = "first\n" + "x" * 10_000 + "needle" + "y" * 10_000 + "\nlast"
    (match,) = search(text, "needle")
    assert excerpt(text, match) == "x" * 100 + "needle" + "y" * 100
    (match,) = search("first\nneedle\nlast", "needle")
    assert excerpt("first\nneedle\nlast", match) == "needle"
    (match,) = search(text, "x*y")
    assert len(excerpt(text, match)) == 400


def test_search_time_does_not_depend_on_the_pattern():
    text = "a" * 2_000_000
    began = perf_counter()
    for pattern in ("*a" * 90 + "*b", "a" * 199 + "b", "a*" * 50 + "b"):
        assert found(text, pattern) == []
    assert perf_counter() - began < 5
