"""Strict JSON parsing: an object, or a ``ValueError`` that names the problem."""

import pytest
from sideband_model_client import compact, parse_json, parse_object, whole_characters


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value"),
        ('{"a": 1', "Expecting"),
        ("[1]", "got a list"),
        ('"x"', "got a string"),
        ("true", "got a boolean"),
        ("null", "got null"),
        ("1.5", "got a number"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": ' * 64 + "1" + "}" * 64 + " ", None),
        ('{"a": ' * 65 + "1" + "}" * 65, "deeper than 64"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": "\\ud83d"}', "unpaired surrogate"),
        ('{"a": "\\ud83d\\ude00"}', None),
    ],
)
def test_text_is_an_object_or_the_error_names_the_problem(text, problem):
    if problem is None:
        assert isinstance(parse_object(text), dict)
    else:
        with pytest.raises(ValueError, match=problem):
            parse_object(text)


def test_unpaired_surrogates_are_accepted_on_request():
    assert parse_object('{"a": "\\ud83d"}', halves=True) == {"a": "\ud83d"}


def test_surrogates_are_joined_or_replaced():
    assert whole_characters("a\ud83d\ude00b\ud83d") == "a😀b\ufffd"
    assert whole_characters("äö") == "äö"


def test_compact_json_has_no_whitespace_and_no_escapes():
    assert compact(parse_json('{"ä" : [1, "😀"]}')) == '{"ä":[1,"😀"]}'
