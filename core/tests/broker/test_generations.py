"""The generation of the known secrets, by which what was searched once is not searched again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.broker import Redaction

pytestmark = pytest.mark.usefixtures("each_search")


def test_each_new_value_and_pattern_begins_a_generation():
    redactor = Redaction()
    seen = [redactor.generation]
    redactor.protect("s3cr3t-value", "one")
    seen.append(redactor.generation)
    redactor.add_pattern(r"key-\d+", "two")
    seen.append(redactor.generation)
    assert len(set(seen)) == 3


def test_a_value_that_is_known_or_too_short_begins_no_generation():
    redactor = Redaction()
    redactor.protect("s3cr3t-value", "one")
    before = redactor.generation
    redactor.protect("s3cr3t-value", "one", origins=["https://example.org"])
    redactor.protect("abc", "two")
    assert redactor.generation == before


def test_two_hosts_never_share_a_generation():
    one, other = Redaction(), Redaction()
    one.protect("s3cr3t-value", "one")
    other.protect("another-value", "one")
    assert one.generation != other.generation


@pytest.mark.parametrize(("value", "crosses"), [("s3cr3t-value", False), ('{"a": 1}', False), ('x"},\n{"y', True)])
def test_only_a_value_with_two_structural_characters_may_cross_a_border(value, crosses):
    redactor = Redaction()
    redactor.protect(value, "one")
    assert redactor.crosses_json is crosses


TEXT = st.text(st.sampled_from('{}[],"ab \n\\'), max_size=12)


@given(TEXT.filter(lambda text: len(text) >= 4), TEXT, TEXT, st.booleans())
def test_a_value_that_is_found_only_across_a_border_is_known_to_cross_it(value, before, after, escaped):
    redactor = Redaction()
    redactor.protect(value, "one")
    whole = before + (json.dumps(value)[1:-1] if escaped else value) + after
    assert redactor.unbound(whole, None)
    for cut in range(1, len(whole)):
        pieces = whole[:cut], whole[cut:]
        if pieces[0][-1] in "[]{}," and pieces[1][0] in "[]{},":
            assert redactor.crosses_json or any(redactor.unbound(one, None) for one in pieces)
