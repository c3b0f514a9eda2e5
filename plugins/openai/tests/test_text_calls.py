import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband_openai._text_calls import find_calls

OFFERED = {"sky": {}, "github__stars": {}}
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
        f"Before. <tool_call>{CALL}</tool_call>\nAfter.",
        f"Before.\n\n  <tool_call>{CALL}</tool_call>  \n\nAfter.",
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
        f"{CALL}\n{CALL} is how it looks.",
        f"Before. <tool_call>{CALL}</tool_call> After.",
        f"Before.\n```json\n{CALL}\n```\nAfter.",
        f"- a list\n\n      ```\n      <tool_call>{CALL}</tool_call>\n      ```",
        f"{CALL}\n```python\nx\n```\n<tool_call>{{}}</tool_call>",
        f"<tool_call>{CALL}</tool_call>\n</think>\nNo.",
        f"<tool_call>{CALL}</tool_call></think>",
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
    assert found(CALL, {}) == (CALL, [])


@pytest.mark.parametrize("depth", [62, 70, 5_000])
def test_arguments_are_nested_up_to_the_limit_of_json(depth):
    mark, name = "]<]minimax[>[", '<invoke name="sky">'
    nested = f"{mark}{name}{f'{mark}<a>' * depth}x{f'{mark}</a>' * depth}{mark}</invoke>"
    literal = f"[sky(a={'[' * depth}{']' * depth})]"
    for text in (nested, literal):
        assert bool(found(text)[1]) == (depth < 64)


@pytest.mark.parametrize(
    "quoted",
    [
        f"Models write `<tool_call>{CALL}</tool_call>` to call.",
        f'The page says "<tool_call>{CALL}</tool_call>".',
        f"Models write `then: <tool_call>{CALL}</tool_call>` to call.",
        f"> <tool_call>{CALL}</tool_call>",
        f"```xml\n<tool_call>{CALL}</tool_call>\n```",
        f"~~~\n<tool_call>{CALL}</tool_call> x\n~~~",
        f"~~~~\n```\n~~~\n<tool_call>{CALL}</tool_call> x\n~~~~",
        f"<think>\n<tool_call>{CALL}</tool_call> x\n</think>",
        "sky(at) is a tool.",
    ],
)
def test_quoted_call_does_not_hide_the_call_after_it(quoted):
    assert found(f"{quoted}\n{CALL}") == (quoted, [("sky", ARGUMENTS)])


def test_backtick_in_arguments_does_not_quote_the_next_call():
    call = '<function=sky>{"at": "`"}</function>'
    assert found(call * 2)[1] == [("sky", {"at": "`"})] * 2


def test_more_calls_than_the_limit_are_not_found():
    assert len(found(f"{CALL}\n" * 64)[1]) == 64
    for text in (f"{CALL}\n" * 65, f"[{', '.join([CALL] * 65)}]", f"[{', '.join(['sky()'] * 65)}]", "sky();" * 65):
        assert found(text) == (text, [])


def test_more_openings_than_the_limit_hide_all_calls():
    assert found(f"{CALL}\n" + '{"a": 1}\n' * 90)[1] == [("sky", ARGUMENTS)]
    text = f"{CALL}\n" + '{"a": 1}\n' * 100
    assert found(text) == (text, [])


PLAIN = [
    *("x", "<", "[", "(", "a(", "`", "```", "~~~\n", "[\n", "{\n", '{"a":', '{"a":1}\n', '{"a":1}; ', "\n", " \n"),
    "\\",
]
REGIONS = [
    *("<think>\n", "</think>\n", "```json\n{\n", "```tool_code\n", "> <tool_call>sky"),
    f"`<tool_call>{CALL}</tool_call>` ",
]
TAGS = [
    *("<tool_call>", "<tool_call> ", "<tool_call>\n{", "<tool_call>sky<arg_key>", "<minimax:tool_call>\n"),
    *("<tool_call>sky<arg_key>at</arg_key><arg_value>", "<function=sky>", "<function=sky>{", "</parameter>"),
    *("<function=sky><parameter=at>", '<invoke name="sky">', "]<]minimax[>[<a>", "]<]minimax[>[", "[TOOL_CALLS]sky{}"),
    *("<|tool_call_begin|>sky:0<|tool_call_argument_begin|>", '<|open|>call tool="sky"<|sep|>'),
]
PYTHON = [
    "<|python_start|>[sky()",
    "[sky(),",
    "sky();",
    "sky.",
    "sky(a=(",
    "sky(a=-",
    'sky(a="\\',
    "sky(a=1,",
    "print(",
]
OPENINGS = ["", "<function=sky>\n<parameter=at>", ']<]minimax[>[<invoke name="sky">', "[sky(at=", "<tool_call>{"]


@pytest.mark.parametrize("piece", [*PLAIN, *REGIONS, *TAGS, *PYTHON])
def test_adversarial_text_is_rejected_in_linear_time(piece):
    for opening in OPENINGS:
        assert found(opening + piece * (100_000 // len(piece)))[1] == []


@pytest.mark.parametrize(
    "opening",
    [
        *("", "{}", CALL, f"<tool_call>{CALL}", f"<tool_call>{CALL}</tool_call>", "<tool_call>", "<tool_call>sky"),
        *("<think>", "[sky(", "<function=sky>", "<function=sky><parameter=at>x</parameter>", "[TOOL_CALLS]"),
    ],
)
def test_long_whitespace_takes_linear_time(opening):
    for space in (" ", "\n", "\t", " \n"):
        assert len(found(f"{opening}{space * (100_000 // len(space))}x")[1]) <= 1


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.sampled_from([*PLAIN, *REGIONS, *TAGS, *PYTHON, CALL, "</tool_call>", "</function>"]), min_size=1, max_size=4
    )
)
def test_any_repetition_needs_memory_in_proportion_to_its_length(pieces):
    piece = "".join(pieces)
    text = piece * (20_000 // len(piece))
    tracemalloc.start()
    try:
        found(text)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(text)
    finally:
        tracemalloc.stop()


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
    assert {one.name for one in calls} <= OFFERED.keys()
    assert calls or rest == text
    for one in calls:
        json.dumps(one.arguments, allow_nan=False).encode()


@given(JSON)
def test_json_without_a_tool_name_is_unchanged(value):
    text = json.dumps(value, indent=2)
    assert find_calls(text, {"another": {}}) == (text, ())


@given(st.text(st.characters(exclude_characters="{"), max_size=200))
def test_text_without_an_object_has_no_call(text):
    assert find_calls(text, OFFERED) == (text, ())
