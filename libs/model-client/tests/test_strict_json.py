"""JSON of servers and models: an object, or a ``ValueError`` that says what it is."""

import pytest
from sideband_model_client import compact, parse_json, parse_object, whole_characters


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value"),
        ('{"a": 1', "Expecting"),
        ("[1]", "but a list"),
        ('"x"', "but a text"),
        ("true", "but true or false"),
        ("null", "but null"),
        ("1.5", "but a number"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": -Infinity}', "-Infinity is no JSON"),
        ('{"a": ' * 64 + "1" + "}" * 64 + " ", None),
        ('{"a": ' * 65 + "1" + "}" * 65, "deeper than 64"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": "\\ud83d"}', "half of a character"),
        ('{"a": "\\ud83d\\ude00"}', None),
    ],
)
def test_it_is_an_object_or_the_error_says_what_it_is(text, problem):
    if problem is None:
        assert isinstance(parse_object(text), dict)
    else:
        with pytest.raises(ValueError, match=problem):
            parse_object(text)


def test_halves_of_characters_may_be_let_through():
    assert parse_object('{"a": "\\ud83d"}', halves=True) == {"a": "\ud83d"}


def test_halves_are_joined_or_replaced():
    assert whole_characters("a\ud83d\ude00b\ud83d") == "a😀b\ufffd"
    assert whole_characters("äö") == "äö"


def test_it_is_written_short_and_as_it_is():
    assert compact(parse_json('{"ä" : [1, "😀"]}')) == '{"ä":[1,"😀"]}'
