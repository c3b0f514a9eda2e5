"""Output schemas: the same verdict as a complete validator, and a bounded effort whatever the schema is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from sideband_llm import OutputSchemaInvalid
from sideband_llm._output_schema import OutputSchema

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.5]) | st.text("ab1", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
counts = st.integers(0, 3)
bounds = st.sampled_from([-2, 0, 0.5, 1, 2])
kinds = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])


def schemas_of(inner):
    lists = st.lists(inner, min_size=1, max_size=3)
    maps = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
            "properties": maps,
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": lists,
            "enum": st.lists(values, min_size=1, max_size=3),
            "const": values,
            "pattern": st.sampled_from(["a", "^b+$", "[0-9]"]),
            "uniqueItems": st.booleans(),
            "anyOf": lists,
            "oneOf": lists,
            "allOf": lists,
            "$ref": st.just("#/$defs/x"),
            **dict.fromkeys(
                ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"], counts
            ),
            **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], bounds),
        },
    ).map(lambda found: dict(list(found.items())[:4]))


schemas = st.recursive(st.booleans() | schemas_of(st.booleans()), schemas_of, max_leaves=4)


@settings(max_examples=40, deadline=None)
@given(schema=schemas_of(schemas), value=values)
def test_verdict_is_that_of_a_complete_validator(schema, value):
    whole = {**schema, "$defs": {"x": {"type": ["string", "object"]}}}
    assert (OutputSchema.of(whole).problem(value) is None) == Draft202012Validator(whole).is_valid(value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "Ada", "age": 36}, None),
        ({"name": "Ada", "age": 36.5}, "`age` must be an integer, got 36.5"),
        ({"name": "", "age": 1}, "`name` must have at least 1 characters, got 0"),
        ({"age": 1}, 'the answer must have the property "name"'),
        ({"name": "Ada", "born": 1815}, 'the answer must not have the property "born"'),
        ([], "the answer must be an object, got []"),
    ],
)
def test_problem_names_the_value_and_what_was_expected(value, problem):
    assert OutputSchema.of(PERSON).problem(value) == problem


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"if": True}, "unsupported keyword `if`"),
        ({"propertys": {}}, r"`propertys` \(did you mean `properties`\?\)"),
        ({"properties": {"a": {"type": "text"}}}, '/properties/a has an invalid value of `type`: "text"'),
        ({"items": 3}, "/items must be an object, true or false"),
        ({"$ref": "https://example.org/schema.json"}, "which is not in `\\$defs`"),
        ({"$ref": "#/$defs/missing"}, "which is not in `\\$defs`"),
        ({"$ref": "#/properties/a"}, "which is not in `\\$defs`"),
        ({"pattern": "(a)\\1"}, "unsupported `pattern`: .*backreferences"),
        ({"minLength": -1}, "invalid value of `minLength`: -1"),
        ({"enum": []}, "invalid value of `enum`"),
        ({"description": "x" * 70_000}, "70,019 characters; the maximum is 65,536"),
        ({"anyOf": [True] * 6_000}, "more than 5,000 subschemas"),
        ({"maximum": float("nan")}, "not JSON"),
    ],
)
def test_schema_that_is_not_supported_is_refused_with_the_reason(schema, problem):
    with pytest.raises(OutputSchemaInvalid, match=problem):
        OutputSchema.of(schema)


def nested(depth):
    schema = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def test_deep_schema_is_refused():
    with pytest.raises(OutputSchemaInvalid, match="nested more than 32 levels"):
        OutputSchema.of(nested(40))
    with pytest.raises(OutputSchemaInvalid):
        OutputSchema.of(nested(5_000))


def list_of(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#"}, 1),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, 1),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}, 1),
        (
            {
                "$ref": "#/$defs/a0",
                "$defs": {
                    **{f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 9} for n in range(8)},
                    "a8": {"type": "string"},
                },
            },
            1,
        ),
        ({"items": {"enum": [list(range(1_000))]}}, [list(range(1_000))] * 60),
        ({"uniqueItems": True}, [list_of(990)] * 2),
        ({"items": {"$ref": "#"}}, list_of(400)),
    ],
)
def test_schema_that_takes_too_long_is_refused(schema, value):
    with pytest.raises(OutputSchemaInvalid, match="too many steps"):
        OutputSchema.of(schema).problem(value)


def test_pattern_takes_linear_time():
    schema = OutputSchema.of({"pattern": "^(a+)+$"})
    assert schema.problem("a" * 50_000) is None
    assert "must match the pattern" in schema.problem("a" * 50_000 + "!")


def test_recursive_schema_of_a_tree_is_supported():
    tree = {"$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "$ref": "#/$defs/tree"}
    assert OutputSchema.of(tree).problem([[], [[]]]) is None
    assert OutputSchema.of(tree).problem([[], [1]]) == "`[1][0]` must be a list, got 1"
