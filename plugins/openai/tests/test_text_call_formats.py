"""Calls in the formats of many models. The answers are in the folder `text_calls`, a file for each family."""

import json
import tomllib
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.providers import ToolSchema
from sideband_openai._text_calls import find_calls

SCHEMAS = {
    "sky": {
        "at": {"type": "string"},
        "days": {"type": "integer"},
        "clouds": {"type": "number"},
        "detailed": {"type": "boolean"},
        "places": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "github__stars": {"repo": {"type": "string"}},
    "files__write": {"path": {"type": "string"}, "text": {"type": "string"}},
    "now": {},
}
TOOLS = {name: {"type": "object", "properties": properties} for name, properties in SCHEMAS.items()}
FAMILIES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["answer"]
    for path in sorted((Path(__file__).parent / "text_calls").glob("*.toml"))
}
ANSWERS = [
    pytest.param(answer, id=f"{family}: {answer['name']}") for family, answers in FAMILIES.items() for answer in answers
]


def expected(answer):
    return [(one["name"], with_nulls(one["arguments"])) for one in answer.get("calls", ())]


def with_nulls(value):
    """Return the value with `None` for `<null>`, because TOML has no null."""
    if isinstance(value, dict):
        return {key: with_nulls(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_nulls(one) for one in value]
    return None if value == "<null>" else value


def found(text, tools=TOOLS):
    rest, calls = find_calls(text, tools)
    return rest, [(one.name, one.arguments) for one in calls]


@pytest.mark.parametrize("answer", ANSWERS)
def test_answer_contains_exactly_these_calls(answer):
    rest, calls = found(answer["text"])
    assert calls == expected(answer)
    if not calls:
        assert rest == answer["text"]
    elif "rest" in answer:
        assert rest == answer["rest"]


@pytest.mark.parametrize("answer", [answer for answer in ANSWERS if "calls" in answer.values[0]])
def test_cut_answer_contains_no_other_calls(answer):
    whole = expected(answer)
    for end in range(len(answer["text"])):
        calls = found(answer["text"][:end])[1]
        assert calls == whole[: len(calls)]


@pytest.mark.anyio
@pytest.mark.parametrize("family", FAMILIES)
async def test_answer_in_random_chunks_contains_the_same_calls(shared_client, shared_server, make, family):
    random = Random(family)
    tools = tuple(ToolSchema(name=name, parameters=schema) for name, schema in TOOLS.items())
    for answer in FAMILIES[family]:
        text, chunks = answer["text"], []
        while text:
            size = random.choice([1, 2, 3, 7, 20])
            chunks.append(make.chunk(content=text[:size]))
            text = text[size:]
        shared_server.reply(make.events(*chunks, make.chunk(finish="stop")))
        message = await shared_client.ask(make.request().model_copy(update={"tools": tools}))
        assert [(one.name, one.arguments) for one in message.tool_calls] == expected(answer), answer["name"]


def test_at_least_a_hundred_answers_of_every_family_are_tested():
    assert len(ANSWERS) >= 150
    assert set(FAMILIES) >= {"qwen3_coder", "llama", "deepseek", "kimi", "glm", "minimax", "pythonic"}


# Formats without escapes cannot express a value that contains their own markup.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="<>|]"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("now"), st.just({})),
        st.tuples(
            st.just("sky"),
            st.fixed_dictionaries(
                {},
                optional={
                    "at": TEXT,
                    "days": st.integers(-(10**6), 10**6),
                    "clouds": st.floats(allow_nan=False, allow_infinity=False),
                    "detailed": st.booleans(),
                    "places": st.lists(TEXT, max_size=3),
                    "options": st.dictionaries(TEXT, VALUES, max_size=3),
                },
            ),
        ),
    ),
    min_size=1,
    max_size=3,
)


def raw(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tagged(begin, argument, end):
    return lambda calls: "\n".join(
        begin.format(name) + "".join(argument.format(key, raw(value)) for key, value in arguments.items()) + end
        for name, arguments in calls
    )


def named(begin, end, before="", after=""):
    return lambda calls: before + "".join(begin.format(name) + raw(given) + end for name, given in calls) + after


def as_json(calls):
    return [{"name": name, "arguments": arguments} for name, arguments in calls]


def repr_of(calls):
    written = [f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in calls]
    return f"[{', '.join(written)}]"


WRITERS = {
    "bare": lambda calls: json.dumps(as_json(calls)),
    "lines": lambda calls: "\n".join(raw(one) for one in as_json(calls)),
    "semicolons": lambda calls: "; ".join(raw(one) for one in as_json(calls)),
    "hermes": lambda calls: "\n".join(f"<tool_call>\n{raw(one)}\n</tool_call>" for one in as_json(calls)),
    "block": lambda calls: f"```json\n{json.dumps(as_json(calls), indent=1)}\n```",
    "python": repr_of,
    "lfm": lambda calls: f"<|tool_call_start|>{repr_of(calls)}<|tool_call_end|>",
    "qwen": tagged("<tool_call>\n<function={}>\n", "<parameter={}>\n{}\n</parameter>\n", "</function>\n</tool_call>"),
    "glm": tagged("<tool_call>{}\n", "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n", "</tool_call>"),
    "minimax": tagged(
        '<minimax:tool_call>\n<invoke name="{}">\n',
        '<parameter name="{}">{}</parameter>\n',
        "</invoke>\n</minimax:tool_call>",
    ),
    "minimax m3": tagged(
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="{}">',
        "]<]minimax[>[<{0}>{1}]<]minimax[>[</{0}>",
        "]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
    ),
    "kimi": named(
        "<|tool_call_begin|>functions.{}:0<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
    ),
    "deepseek": named(
        "<\uff5ctool▁call▁begin\uff5c>{}<\uff5ctool▁sep\uff5c>",
        "<\uff5ctool▁call▁end\uff5c>",
        "<\uff5ctool▁calls▁begin\uff5c>",
        "<\uff5ctool▁calls▁end\uff5c>",
    ),
    "llama": named("<function={}>", "</function>"),
    "mistral": named("[TOOL_CALLS]{}", ""),
}


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=30)
@given(calls=CALLS)
def test_written_calls_are_read_again(writer, calls):
    assert found(WRITERS[writer](calls))[1] == calls


@given(st.sampled_from(list(WRITERS)), CALLS, st.data())
def test_damaged_calls_are_only_those_of_offered_tools(writer, calls, data):
    text = WRITERS[writer](calls)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    damaged = text[:start] + data.draw(st.sampled_from(["", "<", "\n", '"', "</tool_call>", "x"])) + text[end:]
    rest, calls = found(damaged)
    assert {name for name, _ in calls} <= {"sky", "now"}
    assert calls or rest == damaged


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "integer"}, "3", 3),
        ({"type": "integer"}, " 3\n", 3),
        ({"type": "integer"}, "3.5", "3.5"),
        ({"type": "integer"}, "true", "true"),
        ({"type": "number"}, "3", 3),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "number"}, "9" * 5_000, "9" * 5_000),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "1", "1"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "3", 3),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "three", "three"),
        ({"$ref": "#/$defs/count"}, "3", 3),
        ({"allOf": [{"$ref": "#/$defs/count"}]}, "3", 3),
        ({"$ref": "#/$defs/loop"}, "3", 3),
        ({"$ref": "https://example.com/schema"}, "3", 3),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, "2", "2"),
        ({"const": "2"}, "2", "2"),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "array"}, "(1, 'a')", [1, "a"]),
        ({"type": "array"}, "1, 2", "1, 2"),
        ({"type": "array"}, "['a'] or ['b']", "['a'] or ['b']"),
        ({"type": "object"}, "{'a': None}", {"a": None}),
        ({"type": "object"}, "[" * 100_000, "[" * 100_000),
        ({"type": "object"}, "__import__('os')", "__import__('os')"),
        ({}, "3", 3),
        ({"type": 3}, "3", 3),
        (None, "3", "3"),
    ],
)
def test_value_has_the_type_of_its_schema(schema, text, value):
    properties = {} if schema is None else {"value": schema}
    definitions = {"count": {"type": "integer"}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}] * 9}}
    tools = {"sky": {"type": "object", "properties": properties, "$defs": definitions}}
    calls = found(f"<tool_call>sky<arg_key>value</arg_key><arg_value>{text}</arg_value></tool_call>", tools)[1]
    assert calls == [("sky", {"value": value})]
