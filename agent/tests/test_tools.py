"""Tool declarations of plugins, and views that only narrow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sideband.tools import Tool, ToolView, tool


class Params(BaseModel):
    text: str
    times: int = 1


async def repeat(params: Params, ctx) -> str:
    """Add a note.

    Use it for what must not be forgotten.
    """
    return params.text * params.times


add = tool("notes.add")(repeat)


def test_schema_contains_name_docstring_and_parameters():
    assert add.schema.name == "notes__add"
    assert add.schema.description.startswith("Add a note.")
    assert add.schema.parameters["required"] == ["text"]


class Tree(BaseModel):
    children: list["Tree"] = []


def test_schema_of_recursive_parameters_has_the_type_that_models_require():
    async def plant(params: Tree, ctx) -> str:
        """Plant a tree."""
        return "planted"

    assert tool("plant")(plant).schema.parameters["type"] == "object"


@pytest.mark.parametrize(
    "part", [lambda found: found, lambda found: found["properties"], lambda found: found["required"]]
)
def test_parameters_of_a_schema_which_all_requests_share_are_immutable(part):
    with pytest.raises(TypeError, match="immutable"):
        part(add.schema.parameters).clear()
    assert add.schema is add.schema
    assert add.schema.model_dump()["parameters"] == add.parameters


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"level": 9}, "`level` must be a Level"),
        ({"timeout": -1}, "`timeout` must be a positive number"),
        ({"resume": "sometimes"}, "`resume` must be one of replay, ask, never, got 'sometimes'"),
    ],
)
def test_tool_with_an_invalid_option_cannot_be_made(options, problem):
    with pytest.raises(TypeError, match=problem):
        Tool("notes", "", {"type": "object"}, dict, add.run, **options)
    with pytest.raises(TypeError, match=problem):
        tool("notes", **options)(repeat)


def test_no_class_can_be_derived_from_tool_which_could_change_after_it_was_checked():
    with pytest.raises(TypeError, match="no class may be derived"):
        type("Chameleon", (Tool,), {})


def test_size_of_the_schemas_of_a_view_is_the_length_of_their_json():
    view = ToolView.of([add, Tool("é", "", {"type": "object"}, dict, add.run)])
    assert view.schema_size == sum(len(one.model_dump_json()) for one in view.schemas())


def test_arguments_are_validated_and_coerced():
    assert add.validate({"text": "x", "times": "2"}) == {"text": "x", "times": 2}
    with pytest.raises(ValueError, match="`times`"):
        add.validate({"text": "x", "times": "many"})


@pytest.mark.parametrize("name", ["", "Notes", "notes.add.more", "notes-add", "a" * 65, "notes..add", "1notes"])
def test_invalid_tool_name_is_rejected(name):
    with pytest.raises(TypeError, match="invalid tool name"):
        tool(name)(add.run)


async def takes_too_little(params: Params) -> None:
    """Take one parameter."""


async def lacks_annotation(params, ctx) -> None:
    """Leave the annotation out."""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda params, ctx: None, "async def"),
        (takes_too_little, r"\(params, ctx\)"),
        (lacks_annotation, "pydantic model"),
    ],
)
def test_invalid_tool_function_is_rejected(function, problem):
    with pytest.raises(TypeError, match=problem):
        tool("notes")(function)


NAMES = st.lists(st.from_regex(r"[a-c]{1,2}(\.[a-c])?", fullmatch=True), unique=True, max_size=8)
PATTERNS = st.lists(st.from_regex(r"[a-c]{0,2}(\.[a-c])?\*?", fullmatch=True), max_size=4)


def made(names):
    return ToolView.of([Tool(name, "", {}, dict, print) for name in names])


SNAPSHOTS = st.lists(
    st.dictionaries(st.from_regex(r"[a-c]{1,2}(\.[a-c])?", fullmatch=True), st.sampled_from(["skill a", "plugin a"])),
    min_size=1,
    max_size=5,
)
SOURCES = st.none() | st.lists(st.sampled_from(["skill a", "skill *", "plugin a", "plugin b"]), max_size=2)


def view_of(snapshot):
    return ToolView.of([Tool(name, "", {}, dict, print, source=source) for name, source in snapshot.items()])


@given(NAMES, PATTERNS, PATTERNS)
def test_narrowed_view_has_no_additional_tools(names, first, second):
    view = made(names)
    once = view.narrow(first)
    twice = once.narrow(second)
    assert set(twice.names) <= set(once.names) <= set(view.names)
    assert list(once.names) == sorted(once.names)
    assert view.narrow(second).narrow(first).names == twice.names


@given(SNAPSHOTS, st.lists(st.tuples(st.none() | PATTERNS, SOURCES), max_size=4))
def test_no_change_of_the_tools_widens_a_view(snapshots, steps):
    restricted = ToolView()
    allowed = [ToolView()]
    for names, sources in steps:
        restricted = restricted.narrow(names, sources=sources)
        allowed.append(ToolView().narrow(names, sources=sources))
    for snapshot in snapshots:
        current = view_of(snapshot)
        restricted = restricted.resolve(current)  # in turn, as a view that was resolved before must not forget
        expected = set(current.names)
        for one in allowed:
            expected &= set(one.resolve(current).names)
        assert set(restricted.names) == expected
        assert restricted.narrow(["a*"]).resolve(current) == restricted.narrow(["a*"])


@given(SNAPSHOTS, SNAPSHOTS)
def test_resolving_a_restricted_view_keeps_its_restrictions(first, second):
    child = view_of(first[0]).narrow(["a*"]).resolve(view_of(second[0]).narrow(sources=["skill *"]))
    assert all(one.name.startswith("a") and one.source == "skill a" for one in child.tools)
    assert child.resolve(view_of(second[0])) == child


def test_view_can_be_restricted_to_sources():
    view = view_of({"a": "skill a", "b": "plugin b", "c": "plugin bc"})
    assert view.narrow(sources=["plugin b"]).names == ("b",)
    assert view.narrow(sources=["plugin *"]).names == ("b", "c")
    assert view.narrow(["a", "b"], sources=["plugin *"]).names == ("b",)
    assert view.narrow(sources=[]).names == ()


def test_tool_that_appears_later_is_visible_only_if_the_view_already_allowed_it():
    view = view_of({"a": "skill a"}).narrow(["a", "b*"])
    assert view.resolve(view_of({"a": "skill a", "bc": "skill a", "c": "skill a"})).names == ("a", "bc")


@given(NAMES, PATTERNS)
def test_view_has_exactly_the_tools_that_a_name_or_prefix_matches(names, patterns):
    view = made(names)

    def matches(name, pattern):
        both = (name, name.replace(".", "__"))
        return any(one.startswith(pattern[:-1]) if pattern.endswith("*") else one == pattern for one in both)

    assert set(view.narrow(patterns).names) == {name for name in names if any(matches(name, one) for one in patterns)}
    assert list(view.unknown(patterns)) == [one for one in patterns if not any(matches(name, one) for name in names)]
    for pattern in patterns:
        assert (view.get(pattern) is None) == (
            pattern.endswith("*") or not any(matches(name, pattern) for name in names)
        )


def test_finding_all_tools_of_a_large_view_takes_linear_work(count_calls):
    names = [f"skill{number}.go" for number in range(1_000)]
    view = made(names)

    def find():
        assert all(view.get(name) for name in names)
        assert len(view.narrow(names).tools) == 1_000
        assert view.unknown(names) == ()

    assert count_calls(find) < 20_000


@given(NAMES)
def test_order_does_not_depend_on_discovery_order(names):
    assert made(names).names == made(reversed(names)).names


def test_unknown_names_are_listed():
    view = made(["echo", "github.stars"])
    assert view.unknown(["echo", "github__stars", "github.*", "nope", "no*"]) == ("nope", "no*")


def test_text_in_place_of_a_list_of_names_is_rejected():
    view = ToolView()
    for use in (view.narrow, view.unknown, lambda one: view.narrow(sources=one)):
        with pytest.raises(TypeError, match=r"expected a list of names, got a text: write \['notes\.\*'\]"):
            use("notes.*")


def test_removed_tools_do_not_return():
    view = view_of({"a": "skill a", "b": "skill a"}).narrow(without=["b", "c*"])
    assert view.names == ("a",)
    assert view.resolve(view_of({"a": "skill a", "b": "skill a", "cat": "skill a"})).names == ("a",)


def test_tools_that_must_be_named_are_removed_unless_they_are():
    view = view_of({"a": "skill a", "b": "skill a", "c": "skill a"})
    assert view.without_unnamed(["b"], explicit=["b", "c"]).names == ("a", "b")
    assert view.without_unnamed(["*"], explicit=["b*"]).names == ("a", "c")
    assert view.without_unnamed(explicit=["c"]).narrow(["c"]).names == ()
