"""Return annotations, and the validation of results."""

import sys

import pytest

IMPORTS = """
import datetime as dt, enum
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, Union
from sideband.skill import tool

class Row(TypedDict):
    name: str
    price: NotRequired[float | None]
@dataclass
class Box:
    size: int
    rows: list[Row]
class Pair(NamedTuple):
    a: int
    b: str = ""
class Color(enum.Enum):
    RED = "red"
class Many(TypedDict, total=False):
"""
IMPORTS += "\n".join(f"    field{number}: int" for number in range(200)) + "\n"

MATCHING = [
    ("int", [1, True]),
    ("float", [1.5, 1, False]),
    ("bool", [True]),
    ("str", [""]),
    ("bytes", [b"x"]),
    ("None", [None]),
    ("list[int]", [[], [1, 2]]),
    ("set[str]", [["a"]]),
    ("tuple[int, str]", [[1, "a"]]),
    ("dict[str, int]", [{}, {"a": 1}]),
    ("int | None", [1, None]),
    ("list[int] | list[str]", [[1], ["a"], []]),
    ("Literal['a', 1]", ["a", 1]),
    ("Color", ["red"]),
    ("Decimal", ["1.5"]),
    ("dt.date", ["2025-01-02"]),
    ("Row", [{"name": "a"}, {"name": "a", "price": None, "url": "more keys are allowed"}]),
    ("Box", [{"size": 1, "rows": [{"name": "a", "price": 1.5}]}]),
    ("Pair", [[1, "a"]]),
]

MISMATCHING = [
    ("int", "five", "expected an integer, got text"),
    ("int", 1.0, "expected an integer, got a number"),
    ("int", None, "expected an integer, got `None`"),
    ("float", "1.5", "expected a number, got text"),
    ("bool", 1, "expected true or false, got an integer"),
    ("str", b"x", "expected text, got bytes"),
    ("str", 1, "expected text, got an integer"),
    ("bytes", "x", "expected bytes, got text"),
    ("None", 0, "expected `None`, got an integer"),
    ("list[int]", [1, "a"], "`result[1]`: expected an integer, got text"),
    ("list", {}, "expected a list, got an object"),
    ("dict", [], "expected an object, got a list"),
    ("tuple[int, str]", [1], "expected a list of 2 values, got 1"),
    ("tuple[int, str]", [1, 2], "`result[1]`: expected text, got an integer"),
    ("dict[str, list[int]]", {"a": [1], "b": [True, None]}, '`result["b"][1]`: expected an integer, got `None`'),
    ("dict[str, int]", {"x" * 100: "a"}, "`result[a key of 100 characters]`: expected an integer, got text"),
    ("int | None", "a", "expected an integer or `None`, got text"),
    ("list[int] | list[str]", [1, "a"], "expected a list"),
    ("list[int] | None", [1, "a"], "`result[1]`: expected an integer, got text"),
    ("Literal['a', 1]", "b", "expected one of ['a', 1]"),
    ("Literal[1]", True, "expected one of [1]"),
    ("Color", "blue", "expected one of ['red']"),
    ("Row", {"price": 1}, "the key `name` is missing"),
    ("Box", {"size": 1, "rows": [{"name": 1}]}, '`result["rows"][0]["name"]`: expected text, got an integer'),
    ("Pair", {"a": 1, "b": ""}, "expected a list, got an object"),
]


@pytest.fixture
def load_tools(load_one):
    """Return a function that loads one skill with a tool for each annotation, and returns the tools by annotation."""

    def run(annotations):
        known = list(dict.fromkeys(annotations))
        functions = [f"@tool\nasync def run{index}() -> {text}:\n    '''Do it.'''" for index, text in enumerate(known)]
        skill = load_one(files={"run.py": "\n".join([IMPORTS, *functions])})
        assert not skill.problems
        return {text: skill.tool(f"run{index}") for index, text in enumerate(known)}

    return run


def test_result_that_matches_its_annotation_is_valid(load_tools):
    tools = load_tools(annotation for annotation, _ in MATCHING)
    for annotation, values in MATCHING:
        for value in values:
            tools[annotation].validate_result(value)


def test_result_that_does_not_match_its_annotation_is_rejected_with_its_place(load_tools):
    tools = load_tools(annotation for annotation, *_ in MISMATCHING)
    found = []
    for annotation, value, _ in MISMATCHING:
        try:
            tools[annotation].validate_result(value)
            found.append((annotation, value, "valid"))
        except ValueError as error:
            found.append((annotation, value, str(error)))
    assert found == MISMATCHING


def test_result_without_a_known_annotation_is_not_checked(load_tools):
    tools = load_tools(["Any", "object", "'Unknown'", "int | Unknown"])
    assert [tool.validate_result for tool in tools.values()] == [None] * 4


def test_steps_of_a_check_are_limited(load_tools):
    # Each of these alternatives walks over the whole list.
    alternatives = ", ".join(f"list[Literal[0, {number}]]" for number in range(1, 60))
    tool = load_tools([f"Union[{alternatives}]"])[f"Union[{alternatives}]"]
    with pytest.raises(ValueError, match="too large to be checked"):
        tool.validate_result([*[0] * 100_000, "x"])


def test_steps_of_a_check_of_a_small_result_are_fewer(load_tools):
    alternatives = ", ".join(f"list[Literal[0, {number}]]" for number in range(1, 60))
    tool = load_tools([f"Union[{alternatives}]"])[f"Union[{alternatives}]"]
    with pytest.raises(ValueError, match="too large to be checked"):
        tool.validate_result([*[0] * 1_000, "x"])


def lines_run(function, *arguments):
    """Return the number of lines of Python that a call runs."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


NUMBERS = ", ".join(map(str, range(300)))
ALTERNATIVES = f"Union[{', '.join(f'list[Literal[{number}]]' for number in range(100))}, int]"


@pytest.mark.parametrize(
    ("annotation", "item"),
    [(f"Literal[{NUMBERS}]", 299), (ALTERNATIVES, 0), ("Many", {})],
    ids=["values", "alternatives", "fields"],
)
def test_long_annotation_does_not_slow_down_the_check_of_each_value(load_tools, annotation, item):
    tool = load_tools([f"list[{annotation}]"])[f"list[{annotation}]"]
    once, often = (lines_run(tool.validate_result, [item] * count) for count in (1, 1_001))
    assert (often - once) / 1_000 < 50


def test_result_of_maximum_size_is_checked(load_tools):
    tool = load_tools(["list[dict[str, int | float | None]]"])["list[dict[str, int | float | None]]"]
    tool.validate_result([{"a": 1, "b": None}] * 83_000)
