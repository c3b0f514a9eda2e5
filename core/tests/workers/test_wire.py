"""Frames and messages: validation and round trips."""

import json
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sideband.workers import ProtocolViolation, _wire
from sideband.workers.runtime import (
    MAX_FRAME,
    MAX_NESTING,
    MAX_VALUES,
    BadFrame,
    LineBuffer,
    Unsendable,
    _codec,
    decode,
    encode,
)

DISPATCH = {
    "__type__": "dispatch",
    "__id__": "mine",
    "__dispatch_id__": "d-1",
    "__caps__": [],
    "__dispatch__": {"op": "echo.get", "params": {}},
}


def changed(**fields):
    return json.dumps({**DISPATCH, **fields}).encode() + b"\n"


def without(*keys):
    return json.dumps({key: value for key, value in DISPATCH.items() if key not in keys}).encode() + b"\n"


VIOLATIONS = {
    "a dispatch id of another form": changed(__dispatch_id__="x-1"),
    "a dispatch id that is not a string": changed(__dispatch_id__=1),
    "a dispatch id with non-ASCII digits": changed(__dispatch_id__="d-\u0661"),
    "a message of the host": b'{"__type__":"dispatch_result","__dispatch_id__":"d-1","payload":1}\n',
    "a call": b'{"__type__":"call","__id__":"mine","__call__":{}}\n',
    "a cancel of a call": b'{"__type__":"cancel","__id__":"mine"}\n',
    "an unknown type": changed(__type__="exec"),
    "a type that is not a string": changed(__type__=["dispatch"]),
    "no type": without("__type__"),
    "no capabilities": without("__caps__"),
    "no request": without("__dispatch__"),
    "an extra field": changed(sudo=True),
    "capabilities that are not a list": changed(__caps__="http"),
    "capabilities that are not strings": changed(__caps__=[1]),
    "a request that is not an object": changed(__dispatch__=[]),
    "a request with an extra field": changed(__dispatch__={"op": "a.b", "params": {}, "caps": []}),
    "an op that is not a string": changed(__dispatch__={"op": 1, "params": {}}),
    "a long op": changed(__dispatch__={"op": "x" * 1000, "params": {}}),
    "parameters that are not an object": changed(__dispatch__={"op": "a.b", "params": []}),
    "a long id": changed(__id__="x" * 1000),
    "an error that is a number": b'{"__type__":"result","__id__":"mine","__error__":1}\n',
    "an error with a value": b'{"__type__":"result","__id__":"mine","__error__":"x","value":1}\n',
    "an error with an unknown field": b'{"__type__":"result","__id__":"mine","__error__":{"code":"x","other":""}}\n',
    "an error with a numeric topic": b'{"__type__":"result","__id__":"mine","__error__":{"code":"x","topic":1}}\n',
    "an error with a long topic": b'{"__type__":"result","__id__":"mine","__error__":{"code":"x","topic":"%s"}}\n'
    % (b"x" * 200),
    "an error with a numeric message": b'{"__type__":"result","__id__":"mine","__error__":{"code":"x","message":1}}\n',
    "a reserved key": b'{"__type__":"result","__id__":"mine","__secrets__":1}\n',
    "an unknown stream": b'{"__type__":"log","stream":"stdin","text":""}\n',
    "a log text that is not a string": b'{"__type__":"log","stream":"stdout","text":1}\n',
    "progress that is not a number": b'{"__type__":"progress","__id__":"mine","current":"much"}\n',
    "a duplicate key": b'{"__type__":"log","stream":"stdout","text":"a","text":"b"}\n',
    "NaN": b'{"__type__":"progress","__id__":"mine","current":NaN}\n',
    "infinity": b'{"__type__":"progress","__id__":"mine","current":1e999}\n',
    "a long number": b'{"__type__":"progress","__id__":"mine","current":' + b"9" * 5000 + b"}\n",
    "invalid UTF-8": b'{"__type__":"log","stream":"stdout","text":"\xff"}\n',
    "a lone surrogate": b'{"__type__":"log","stream":"stdout","text":"\\ud800"}\n',
    "invalid base64": b'{"__type__":"result","__id__":"mine","value":{"__bytes__":"%%%"}}\n',
    "invalid JSON": b"hello\n",
    "a word that is not JSON": b'{"__type__":"pong","number":inf}\n',
    "text after the object": b'{"__type__":"pong","number":1} 1\n',
    "an empty line": b"\n",
    "a list": b"[]\n",
    "deep nesting": b'{"__type__":"result","__id__":"mine","value":' + b"[" * 65 + b"]" * 65 + b"}\n",
    "very deep nesting": b'{"__type__":"result","__id__":"mine","value":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
}


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_invalid_message_of_a_worker_is_rejected(violation):
    with pytest.raises(ProtocolViolation):
        _wire.parse(VIOLATIONS[violation].rstrip(b"\n"))


def test_base_message_of_the_violations_is_valid():
    assert _wire.parse(changed().strip()) == _wire.DispatchMessage("mine", "d-1", 1, "echo.get", {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"__type__":"result","__id__":"a","value":[1]}', _wire.ResultMessage("a", [1])),
        (b'{"__type__":"result","__id__":"a","value":{"value":1}}', _wire.ResultMessage("a", {"value": 1})),
        (b'{"__type__":"result","__id__":"a","value":1,"more":2}', _wire.ResultMessage("a", {"value": 1, "more": 2})),
        (b'{"__type__":"result","__id__":"a"}', _wire.ResultMessage("a", {})),
        (b'{"__type__":"result","__id__":"a","value":{"__bytes__":"AAE="}}', _wire.ResultMessage("a", b"\0\1")),
        (
            b'{"__type__":"result","__id__":"a","__error__":"plain text"}',
            _wire.ResultMessage("a", error={"code": "skill.raised", "message": "plain text"}),
        ),
        (b'{"__type__":"cancel","__dispatch_id__":"d-3"}', _wire.CancelMessage("d-3", 3)),
        (b'{"__type__":"log","stream":"stderr","text":"x"}', _wire.LogMessage(None, "stderr", "x")),
        (b'{"__type__":"progress","__id__":"a","current":1,"total":null}', _wire.ProgressMessage("a", {"current": 1})),
        (b'{"__type__":"ready","version":1,"python":"3.11.7"}', _wire.ReadyMessage(1, "3.11.7", None)),
    ],
)
def test_valid_message_is_parsed(line, message):
    assert _wire.parse(line) == message


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT.filter(lambda key: key != "__bytes__"), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=50)
@given(st.dictionaries(TEXT.filter(lambda key: key != "__bytes__"), DATA))
def test_encoded_message_is_one_line_and_round_trips(message):
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode(line[:-1]) == message


@given(st.dictionaries(TEXT.filter(lambda key: key != "__bytes__"), DATA))
def test_trusted_message_is_decoded_like_any_other(message):
    line = encode(message)[:-1]
    assert decode(line, trusted=True) == decode(line)


def check(line):
    """Check that a line is a message or a violation, and that the error does not quote the line at length."""
    with suppress(ProtocolViolation):
        _wire.parse(line)
        return
    with pytest.raises(ProtocolViolation) as caught:
        _wire.parse(line)
    assert len(str(caught.value)) < 300


@given(st.binary(max_size=200))
@example(b'{"a": 1}')
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_are_a_message_or_a_violation(line):
    check(line)


@given(st.recursive(DATA, lambda inner: st.dictionaries(st.sampled_from(sorted(DISPATCH)), inner), max_leaves=10))
def test_any_json_is_a_message_or_a_violation(data):
    line = json.dumps(data, default=lambda found: {"__bytes__": found.decode("latin-1")}).encode()
    check(line)


@given(st.lists(st.binary(max_size=50).filter(lambda line: b"\n" not in line)), st.lists(st.integers(1, 60)))
def test_lines_are_independent_of_how_the_data_is_split(lines, cuts):
    data = b"".join(line + b"\n" for line in lines)
    buffer, found = LineBuffer(), []
    for size in [*cuts, len(data) + 1]:
        piece, data = data[:size], data[size:]
        found += buffer.feed(piece)
    assert found == lines


@settings(max_examples=20)
@given(st.integers(1, 200), st.sampled_from(["[]", "{}"]))
def test_nesting_is_counted_exactly(depth, brackets):
    opening = "[" if brackets == "[]" else '{"a":'
    closing = brackets[1]
    line = ('{"a":' + opening * (depth - 1) + "1" + closing * (depth - 1) + "}").encode()
    value = 1
    for _ in range(depth - 1):
        value = [value] if brackets == "[]" else {"a": value}
    if depth <= MAX_NESTING:
        assert decode(line) == {"a": value}
        assert encode({"a": value}) == line + b"\n"
    else:
        with pytest.raises(BadFrame, match="nested deeper"):
            decode(line)
        with pytest.raises(Unsendable, match="nested deeper"):
            encode({"a": value})


def test_brackets_in_strings_do_not_count_as_nesting():
    assert decode(encode({"a": "[" * 1000})) == {"a": "[" * 1000}


def test_incomplete_line_that_is_too_long_is_rejected():
    buffer = LineBuffer()
    buffer.feed(b"x" * (MAX_FRAME - 1))
    with pytest.raises(BadFrame, match="longer than"):
        buffer.feed(b"x")


def test_complete_line_of_the_maximum_length_is_accepted():
    assert len(LineBuffer().feed(b"x" * (MAX_FRAME - 1) + b"\n")[0]) == MAX_FRAME - 1


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), float("inf"), "\ud800", b"x" * MAX_FRAME])
def test_value_that_cannot_be_encoded_is_rejected(value):
    with pytest.raises(Unsendable):
        encode({"value": value})


@pytest.mark.parametrize("inner", [5, None, "%%%", "AAA", ["AAA="], {"__bytes__": "AAA="}])
@pytest.mark.parametrize("around", [lambda value: value, lambda value: [{"a": (value,)}]])
def test_object_that_looks_like_invalid_encoded_bytes_is_rejected(inner, around):
    with pytest.raises(Unsendable, match="looks like encoded bytes"):
        encode({"value": around({"__bytes__": inner})})


@pytest.mark.parametrize("value", [{"__bytes__": 5, "more": 1}, {"a": {"b": "__bytes__"}}, '{"__bytes__":5}', [b"x"]])
def test_value_that_merely_resembles_encoded_bytes_round_trips(value):
    assert decode(encode({"value": value})) == {"value": value}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_all_bytes_types_are_encoded(kind):
    assert decode(encode({"a": kind(b"\x00\xff")})) == {"a": b"\x00\xff"}


def counted(value):
    """Return the number of members and items at all levels."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return len(members) + sum(map(counted, members))


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"1," * MAX_VALUES + b"1]",
        b"[" + b"[]," * (MAX_VALUES // 2) + b"1]",
        b"[" + b"{}," * (MAX_VALUES // 2) + b"1]",
        b"[" + b'"\\\\",' * MAX_VALUES + b"1]",
        b'["' + b"\\\\" * 100 + b'",' + b"1," * MAX_VALUES + b"1]",
    ],
)
def test_line_with_too_many_values_is_rejected(body):
    with pytest.raises(BadFrame, match="more than 250,000 values"):
        decode(b'{"a":' + body + b"}")


def test_encoding_too_many_values_is_rejected():
    with pytest.raises(Unsendable, match="more than 250,000 values"):
        encode({"a": [1] * MAX_VALUES})


@pytest.mark.parametrize("text", ["a,b,[" * 200_000, '","' * 200_000, "\\,[" * 200_000, "[" * 400_000 + '"\\'])
def test_separators_in_strings_do_not_count_as_values(text):
    message = {"a": [text, text], "b": text}
    assert decode(encode(message)) == message


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.sampled_from('a,[{"\\'), max_size=6), min_size=1, max_size=20), st.integers(0, 3))
def test_values_are_counted_regardless_of_strings_between_them(texts, more):
    """A message with the maximum number of values is valid. One with twice as many is not."""
    most = 1_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_codec, "MAX_VALUES", most)
        unit = {"a": texts, "b": {}}
        times = most // (counted(unit) + 2) // 2 - more
        assert decode(encode({"a": [unit] * times})) == {"a": [unit] * times}
        with pytest.raises(Unsendable, match="more than 1,000 values"):
            encode({"a": [unit] * (4 * times + 16)})


def test_line_buffer_uses_memory_proportional_to_the_line():
    buffer = LineBuffer()
    tracemalloc.start()
    try:
        for _ in range(100_000):
            buffer.feed(b"xy")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1_000_000
    assert buffer.is_open


RISKY = [
    "1e999",
    "NaN",
    "-Infinity",
    "1e5",
    "1.0",
    "-0",
    "9007199254740993.0",
    "12345678901234567890123",
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"é\\u00e9"',
    '"/\\/"',
    '"\x01"',
    '{"__bytes__":"AAA="}',
    '{"__bytes__":1}',
    '{"a":1,"a":2}',
    '{"\\u0061":1,"a":2}',
    "[" * 70 + "]" * 70,
    " null ",
]
"""JSON values that parsers treat differently."""


@given(
    pieces=st.lists(st.one_of(st.sampled_from(RISKY), st.integers().map(str), st.floats().map(repr)), max_size=4),
    keys=st.lists(st.sampled_from(["a", "b", "\\u0061", "__id__", "value"]), min_size=4, max_size=4),
    gap=st.sampled_from(["", " ", "\n", "\ufeff"]),
)
@example(["1"], ["__type__"] * 4, "")
def test_white_space_around_a_line_changes_nothing(pieces, keys, gap):
    more = "".join(f',{gap}"{key}":{piece}' for key, piece in zip(keys, pieces, strict=False))
    line = f'{{"__type__":"result","__id__":"mine"{more}}}'.encode()
    assert outcome(line) == outcome(b" " + line) == outcome(line + b"\r\n")


def outcome(line):
    """Return the message of a line, or the reason why it is rejected."""
    try:
        return repr(decode(line))
    except BadFrame as problem:
        return str(problem)
