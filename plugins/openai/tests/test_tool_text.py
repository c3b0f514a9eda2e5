import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_openai._tool_text import find_calls

OFFERED = {"sky", "github__stars"}
CALL = '{"name": "sky", "arguments": {"at": "noon"}}'
ARGUMENTS = {"at": "noon"}


def found(text, offered=OFFERED):
    rest, calls = find_calls(text, offered)
    return rest, [(one.name, one.arguments) for one in calls]


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"  \n{CALL}\n ",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```json\n{CALL}```",
        f"```json\n{CALL}",
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>\n{CALL}",
        f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
        f"[{CALL}]",
        json.dumps(json.loads(CALL), indent=2),
        '{"name": "sky", "parameters": {"at": "noon"}}',
        '{"function": "sky", "parameters": {"at": "noon"}}',
        '{"tool": "sky", "arguments": {"at": "noon"}}',
        '{"type": "function", "id": "x", "function": {"name": "sky", "arguments": {"at": "noon"}}}',
        json.dumps({"name": "sky", "arguments": '{"at": "noon"}'}),
        f'<think>\n{{"name": "sky", "arguments": {{}}}}\n</think>\n{CALL}',
    ],
)
def test_call_is_found_in_every_form(text):
    rest, calls = found(text)
    assert calls == [("sky", ARGUMENTS)]
    assert CALL not in rest


@pytest.mark.parametrize(
    "text",
    [
        f"Before.\n{CALL}\nAfter.",
        f"Before.\n```json\n{CALL}\n```\nAfter.",
        f"Before. <tool_call>{CALL}</tool_call> After.",
    ],
)
def test_text_around_a_call_is_kept(text):
    assert found(text) == ("Before.\nAfter.", [("sky", ARGUMENTS)])


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL}\n{CALL}",
        f"[{CALL}, {CALL}]",
        f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n{CALL}\n</tool_call>",
        f"```json\n{CALL}\n```\nand\n```json\n{CALL}\n```",
    ],
)
def test_several_calls_are_found(text):
    assert found(text)[1] == [("sky", ARGUMENTS)] * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[",
        "The sky is blue.",
        '{"name": "sea", "arguments": {}}',
        '{"name": "sky"}',
        '{"name": "sky", "arguments": {}, "age": 3}',
        '{"name": "sky", "arguments": [1]}',
        '{"name": "sky", "arguments": "noon"}',
        '{"name": "sky", "arguments": {"at": NaN}}',
        '{"name": "sky", "arguments": {"at": "noon",}}',
        '{"name": ["sky"], "arguments": {}}',
        '{"name": "sky", "arguments": {}, "parameters": {}}',
        f'{{"example": {CALL}}}',
        json.dumps({"items": [json.loads(CALL)]}, indent=2),
        f'{{"items": [\n{CALL}\n]}}',
        f"[{CALL}, 1]",
        f'<tool_call>{CALL}\n{{"a": 1}}</tool_call>',
        f"A call looks like {CALL} in JSON.",
        f"{CALL} is how it looks.",
        f"<think>{CALL}</think> No.",
        f"<think>\n{CALL}\n</think>",
        "[]",
        "{}",
        '{"function": {"function": {"name": "sky", "arguments": {}}}}',
        '{"name": "sky", "arguments": {"a":' + '{"a":' * 80 + "1" + "}" * 82,
    ],
)
def test_other_text_is_unchanged(text):
    assert found(text) == (text, [])


def test_no_call_is_found_without_offered_tools():
    assert found(CALL, set()) == (CALL, [])


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 50_000, "[\n" * 100_000, '{"a":1}\n' * 30_000, "x" * 300_000]
)
def test_adversarial_text_is_rejected_quickly(text):
    assert found(text) == (text, [])


def test_text_over_the_limit_is_not_searched():
    text = "x" * 300_000 + f"\n{CALL}"
    assert found(text) == (text, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["sky", "name"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "arguments", "parameters", "function", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
PIECES = st.lists(
    st.sampled_from(["<tool_call>", "</tool_call>", "```json\n", "```", "\n", "{", "[", "]", "}", "</think>", CALL])
    | JSON.map(json.dumps)
    | st.text(max_size=5),
    max_size=8,
).map("".join)


@given(PIECES)
def test_any_text_gives_only_calls_of_offered_tools(text):
    rest, calls = find_calls(text, OFFERED)
    assert {one.name for one in calls} <= OFFERED
    assert calls or rest == text
    for one in calls:
        json.dumps(one.arguments, allow_nan=False).encode()


@given(JSON)
def test_json_without_a_tool_name_is_unchanged(value):
    text = json.dumps(value, indent=2)
    assert find_calls(text, {"another"}) == (text, ())


@given(st.text(st.characters(exclude_characters="{"), max_size=200))
def test_text_without_an_object_has_no_call(text):
    assert find_calls(text, OFFERED) == (text, ())
