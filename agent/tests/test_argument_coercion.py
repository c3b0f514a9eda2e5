"""Texts in arguments are converted if only one meaning is possible."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_agent._tools._argument_coercion import coerced

CONVERTED = [
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("integer", "12", 12),
    ("integer", "-3", -3),
    ("integer", "5.0", 5),
    ("number", "1.5", 1.5),
    ("number", "2", 2),
    ("array", '["a", 1]', ["a", 1]),
    ("object", '{"a": {"b": 1}}', {"a": {"b": 1}}),
    (["integer", "null"], "7", 7),
    (["integer", "boolean"], "true", True),
]
LEFT = [
    ("string", "12"),
    (["string", "integer"], "12"),
    ("boolean", "yes"),
    ("boolean", "1"),
    ("boolean", "True"),
    ("integer", "1.5"),
    ("integer", "1e3"),
    ("integer", "007"),
    ("integer", "1,000"),
    ("integer", "9" * 1_000),
    ("number", "NaN"),
    ("number", "Infinity"),
    ("number", "1e999"),
    ("number", ""),
    ("array", "a, b"),
    ("array", "[NaN]"),
    ("array", '{"a": 1}'),
    ("object", "[]"),
    ("object", '{"a": 1, "a": 2}'),
    ("object", "[" * 100_000),
    ("null", "null"),
]


def one(schema, value):
    return coerced({"x": value}, {"properties": {"x": schema}})


@pytest.mark.parametrize(("types", "text", "value"), CONVERTED)
def test_text_with_one_meaning_is_converted(types, text, value):
    arguments, paths = one({"type": types}, text)
    assert (arguments["x"], type(arguments["x"]), paths) == (value, type(value), ["x"])


@pytest.mark.parametrize(("types", "text"), LEFT)
def test_other_texts_are_left_as_they_are(types, text):
    assert one({"type": types}, text) == ({"x": text}, [])


def test_text_is_left_if_the_schema_does_not_say_its_type():
    assert one({"enum": [1, 2]}, "1") == ({"x": "1"}, [])
    assert coerced({"y": "1"}, {"properties": {"x": {"type": "integer"}}}) == ({"y": "1"}, [])


def test_optional_parameters_of_models_are_converted():
    schema = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert one(schema, "3") == ({"x": 3}, ["x"])


def test_alternative_that_allows_texts_leaves_them():
    schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert one(schema, "3") == ({"x": "3"}, [])


def test_values_within_objects_and_arrays_are_converted():
    schema = {
        "properties": {"edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}}},
        "$defs": {"Edit": {"type": "object", "properties": {"all": {"type": "boolean"}, "old": {"type": "string"}}}},
    }
    arguments, paths = coerced({"edits": '[{"all": "true", "old": "1"}]'}, schema)
    assert arguments == {"edits": [{"all": True, "old": "1"}]}
    assert paths == ["edits", "edits.0.all"]


def test_recursive_schema_ends():
    loop = {"properties": {"x": {"$ref": "#/properties/x"}}}
    assert coerced({"x": "1"}, loop) == ({"x": "1"}, [])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
TYPES = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


@given(VALUES.filter(lambda value: type(value) in TYPES))
def test_json_of_a_value_is_converted_to_the_value(value):
    text = json.dumps(value)
    arguments, paths = one({"type": TYPES[type(value)]}, text)
    assert paths == ([] if len(text) > 100 and not isinstance(value, list | dict) else ["x"])
    assert arguments["x"] == (value if paths else text)


@given(VALUES, st.sampled_from([*TYPES.values(), "string"]))
def test_arguments_that_are_not_converted_are_the_same_object(value, kind):
    given_arguments = {"x": value}
    arguments, paths = coerced(given_arguments, {"properties": {"x": {"type": kind}}})
    assert paths or arguments is given_arguments
