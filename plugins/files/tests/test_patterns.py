"""The patterns of `files.find`, compared with a slow and simple implementation."""

import re

from hypothesis import given
from hypothesis import strategies as st
from sideband_files._patterns import matches

names = st.text(alphabet="ab.", min_size=1, max_size=5)
parts = st.lists(names, max_size=5)
patterns = st.lists(st.just("**") | st.text(alphabet="ab.*?", min_size=1, max_size=5).filter(lambda p: p != "**"))


def slow(path, pattern):
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(slow(path[number:], pattern[1:]) for number in range(len(path) + 1))
    if not path:
        return False
    regex = "".join(".*" if one == "*" else "." if one == "?" else re.escape(one) for one in pattern[0])
    return re.fullmatch(regex, path[0]) is not None and slow(path[1:], pattern[1:])


@given(parts, patterns)
def test_matches_agrees_with_the_definition(path, pattern):
    assert matches(path, pattern) == slow(path, pattern)


def test_hostile_pattern_is_fast():
    assert not matches(["a" * 255] * 16, ["**", "*a*" * 80 + "b"] * 100)
