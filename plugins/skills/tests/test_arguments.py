"""Annotations, their schemas, and the validation of arguments."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

IMPORTS = """
import datetime as dt, enum, typing as t, uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, List, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union

Level = Literal["low", "high"]
class Point(TypedDict):
    x: int
    y: NotRequired[float]
class Loose(TypedDict, total=False):
    x: int
class Deep(Point):
    z: Level
class Tree(TypedDict):
    children: list["Tree"]
@dataclass
class Box:
    size: int
    label: str = ""
class Pair(NamedTuple):
    a: int
    b: int = 2
class Color(Enum):
    RED = "red"
    BLUE = 2
class Number(enum.IntEnum):
    ONE = 1
class Plain:
    pass
"""
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "number"}},
    "additionalProperties": False,
    "required": ["x"],
}


@pytest.fixture
def load_parameter(load_tool):
    def run(annotation):
        return load_tool(f"(value: {annotation})", before=IMPORTS)

    return run


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("bytes", {"type": "string", "contentEncoding": "base64"}),
        ("None", {"type": "null"}),
        ("Any", {}),
        ("t.Any", {}),
        ("list", {"type": "array"}),
        ("dict", {"type": "object"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("Sequence[str]", {"type": "array", "items": {"type": "string"}}),
        ("dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("Mapping[str, Any]", {"type": "object", "additionalProperties": {}}),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        (
            "tuple[int, str]",
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        ("int | None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("Optional[int]", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("Union[int, str, None]", {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        ("int | str | int", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("int | Any", {}),
        ("'int | None'", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Literal['a', 1, None]", {"enum": ["a", 1, None]}),
        ("Level", {"type": "string", "enum": ["low", "high"]}),
        ("Annotated[int, 'How many.']", {"type": "integer", "description": "How many."}),
        ("Point", POINT),
        ("Deep", {
            **POINT,
            "properties": {**POINT["properties"], "z": {"type": "string", "enum": ["low", "high"]}},
            "required": ["x", "z"],
        }),
        ("Loose", {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}),
    ],
)  # fmt: skip
def test_annotation_becomes_a_schema(load_parameter, annotation, schema):
    tool, skill = load_parameter(annotation)
    assert tool.parameters["properties"]["value"] == schema
    assert skill.problems == ()


def test_recursive_type_is_expanded_once(load_parameter):
    schema = load_parameter("Tree")[0].parameters["properties"]["value"]
    assert schema["properties"]["children"] == {"type": "array", "items": {"type": "object"}}


@pytest.mark.parametrize(
    ("annotation", "given", "received"),
    [
        ("datetime", "2025-01-31T12:00:00", "2025-01-31T12:00:00"),
        ("dt.date", "2025-01-31", "2025-01-31"),
        ("uuid.UUID", "12345678123456781234567812345678", "12345678-1234-5678-1234-567812345678"),
        ("Decimal", "1.10", "1.10"),
        ("Path", "a/b", "a/b"),
        ("set[int]", ["1", 1, 2], [1, 2]),
        ("Box", {"size": "3"}, {"size": 3}),
        ("Pair", {"a": 1}, {"a": 1}),
        ("Color", "red", "red"),
        ("Color", "2", 2),
        ("Number", "1", 1),
        ("list[Box]", [{"size": 1}], [{"size": 1}]),
    ],
)
def test_type_without_a_json_form_is_received_as_plain_data_with_a_warning(
    load_parameter, codes, annotation, given, received
):
    tool, skill = load_parameter(annotation)
    assert tool.validate({"value": given}) == {"value": received}
    assert codes(skill.problems) == ["annotation.plain"]


@pytest.mark.parametrize(
    "annotation",
    [
        "Plain",
        "Unknown",
        "list[Unknown]",
        "Callable[[int], str]",
        "Literal[x]",
        "1 + 1",
        "f()",
        "dict[int, str]",
        "'('",
    ],
)
def test_unknown_annotation_accepts_any_value_with_a_warning(load_parameter, codes, annotation):
    tool, skill = load_parameter(annotation)
    assert codes(skill.problems) == ["annotation.unknown"]
    assert tool.parameters["required"] == ["value"]


def test_missing_annotation_is_a_warning(load_tool, codes):
    tool, skill = load_tool("(value)")
    assert tool.validate({"value": {"a": [1]}}) == {"value": {"a": [1]}}
    assert codes(skill.problems) == ["annotation.missing"]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("int", "3", 3),
        ("float", "1e3", 1000.0),
        ("bool", "true", True),
        ("bool", "no", False),
        ("str", "3", "3"),
        ("int | None", "3", 3),
        ("int | None", "null", None),
        ("int | str", "3", "3"),
        ("list[int]", "[1, 2]", [1, 2]),
        ("dict[str, int]", '{"a": 1}', {"a": 1}),
        ("Point", '{"x": 1}', {"x": 1}),
        ("tuple[int, str]", '[1, "a"]', [1, "a"]),
        ("Literal[1, 2]", "2", 2),
        ("Literal['1', 1]", "1", "1"),
        ("bytes", "AAE=", b"\x00\x01"),
        ("Any", "3", "3"),
        ("list", "[1]", [1]),
        ("dict", '{"a": [1]}', {"a": [1]}),
    ],
)
def test_text_from_a_command_line_is_converted(load_parameter, annotation, text, value):
    converted = load_parameter(annotation)[0].validate({"value": text})["value"]
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("int", "x"),
        ("int", 1.5),
        ("int", None),
        ("str", 1),
        ("bool", "perhaps"),
        ("float", float("nan")),
        ("float", "inf"),
        ("list[int]", "1,2"),
        ("list[int]", "[1"),
        ("list[int]", [1, "x"]),
        ("tuple[int, str]", [1]),
        ("dict[str, int]", {"a": "x"}),
        ("Literal['a']", "b"),
        ("Point", {"y": 1}),
        ("Point", {"x": 1, "extra": 1}),
        ("bytes", "not base64!"),
        ("bytes", 3),
        ("None", 1),
        ("Any", {1, 2}),
        ("Any", float("inf")),
        ("datetime", "yesterday"),
        ("uuid.UUID", "x"),
    ],
)
def test_invalid_value_is_an_error_that_names_the_argument(load_parameter, annotation, value):
    with pytest.raises(ValueError, match="`value") as caught:
        load_parameter(annotation)[0].validate({"value": value})
    assert len(str(caught.value)) < 1_000


def test_bytes_are_accepted_in_all_forms(load_parameter):
    tool = load_parameter("bytes")[0]
    for value in (b"\x00\x01", {"__bytes__": "AAE="}, "AAE="):
        assert tool.validate({"value": value}) == {"value": b"\x00\x01"}


def test_all_invalid_arguments_are_named_with_their_values(load_tool):
    tool, _ = load_tool("(repo: str, count: int, items: list[dict[str, int]] = [], flag: bool = False)")
    with pytest.raises(ValueError, match="is required") as caught:
        tool.validate({"reppo": "x", "count": "many", "items": [{"a": 1}, {"b": "z"}]})
    assert str(caught.value) == (
        "`repo` is required; `count` = 'many': expected an integer; "
        "`items[1].b` = 'z': expected an integer; "
        "unknown argument `reppo` (did you mean `repo`?)"
    )


def test_long_value_is_cut_in_the_message(load_tool):
    with pytest.raises(ValueError, match="count") as caught:
        load_tool("(count: int)")[0].validate({"count": "x" * 10_000})
    assert len(str(caught.value)) < 300


def test_missing_optional_arguments_are_not_added(load_tool):
    tool, _ = load_tool("(a: int, b: int = 2, *, c: int | None = None)")
    assert tool.validate({"a": 1}) == {"a": 1}
    assert tool.validate({"a": 1, "c": None}) == {"a": 1, "c": None}


@pytest.mark.parametrize(
    ("default", "shown"),
    [("3", 3), ("'x'", "x"), ("None", None), ("[1, 'a']", [1, "a"]), ("{'a': 1.5}", {"a": 1.5}), ("-1", -1)],
)
def test_literal_default_is_in_the_schema(load_tool, default, shown):
    tool, _ = load_tool(f"(value: Any = {default})", before="from typing import Any")
    assert tool.parameters["properties"]["value"]["default"] == shown
    assert "required" not in tool.parameters


@pytest.mark.parametrize("default", ["LIMIT", "f()", "b'x'", "1e999", "{1: 2}", "(1, 2)", "..."])
def test_other_default_makes_the_parameter_optional(load_tool, default):
    tool, _ = load_tool(f"(value: Any = {default})", before="from typing import Any")
    assert "default" not in tool.parameters["properties"]["value"]
    assert tool.validate({}) == {}


def test_result_schema_and_signature_are_read(load_tool):
    tool, _ = load_tool("(a: int, *, b: str = 'x')", returns=" -> list[int]")
    assert tool.returns == {"type": "array", "items": {"type": "integer"}}
    assert tool.signature == "run(a: int, *, b: str='x') -> list[int]"


def test_unknown_result_type_has_no_schema(load_tool, codes):
    tool, skill = load_tool("(a: int)", returns=" -> Unknown")
    assert tool.returns is None
    assert skill.problems == ()


def test_variadic_parameters_are_a_warning(load_tool, codes):
    tool, skill = load_tool("(a: int, *more, **others)")
    assert list(tool.parameters["properties"]) == ["a"]
    assert codes(skill.problems) == ["tool.rest"]


GOOGLE = """Stars of it.

More.

Args:
    repo (str): owner/name
        or more
    n: how many

Returns:
    int: it
"""
NUMPY = """Stars of it.

Parameters
----------
repo : str
    owner/name
    or more
n
    how many

Returns
-------
int
"""
SPHINX = """Stars of it.

:param str repo: owner/name
    or more
:param n: how many
:returns: it
"""


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, SPHINX])
def test_docstring_describes_tool_and_parameters(load_tool, doc):
    tool, skill = load_tool("(repo: str, n: int = 1)", doc=doc)
    properties = tool.parameters["properties"]
    assert tool.description == "Stars of it."
    assert properties["repo"]["description"] == "owner/name or more"
    assert properties["n"]["description"] == "how many"
    assert skill.problems == ()


def test_unknown_parameter_in_a_docstring_is_a_warning(load_tool, codes):
    _, skill = load_tool("(repo: str)", doc="Do it.\n\nArgs:\n    reppo: owner/name\n")
    assert codes(skill.problems) == ["docstring.parameter"]
    assert "did you mean `repo`" in skill.problems[0].reason


def test_exponentially_growing_type_is_limited(load_tool, codes):
    before = "from typing import TypedDict\nclass A0(TypedDict):\n    x: int\n"
    for level in range(1, 12):
        fields = "".join(f"    f{number}: A{level - 1}\n" for number in range(10))
        before += f"class A{level}(TypedDict):\n{fields}"
    tool, skill = load_tool("(value: A11)", before=before)
    assert len(str(tool.parameters)) < 100_000
    assert set(codes(skill.problems)) == {"annotation.unknown"}


def test_error_for_a_number_with_thousands_of_digits_names_the_argument(load_tool):
    with pytest.raises(ValueError, match="`flag`"):
        load_tool("(flag: bool)")[0].validate({"flag": 10**5_000})


def test_deeply_nested_values_are_refused(load_parameter):
    value = []
    for _ in range(2_000):
        value = [value]
    with pytest.raises(ValueError, match="`value`"):
        load_parameter("Any")[0].validate({"value": value})


ATOMS = st.sampled_from(["int", "str", "None", "Any", "bytes", "Point", "Color", "'int'", "Literal['a']", "zzz", "..."])
ANNOTATIONS = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds("list[{}]".format, inner)
        | st.builds("dict[str, {}]".format, inner)
        | st.builds("{} | {}".format, inner, inner)
        | st.builds("Optional[{}]".format, inner)
        | st.builds("tuple[{}, {}]".format, inner, inner)
        | st.builds("set[{}]".format, inner)
        | st.builds("Annotated[{}, 'x']".format, inner)
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(annotation=ANNOTATIONS, value=VALUES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
def test_validation_raises_only_value_error_and_is_idempotent(load_parameter, annotation, value):
    tool, _ = load_parameter(annotation)
    try:
        checked = tool.validate({"value": value})
    except ValueError:
        return
    # accepted values are plain data, which is accepted again without changes
    assert tool.validate(checked) == checked
