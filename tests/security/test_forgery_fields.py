"""Messages of every type with one missing or invalid field. Each ends its worker."""

import json

import pytest
from sideband.workers import ProtocolViolation

LONG = "x" * 129
REQUEST = {"op": "vault.read", "params": {"name": "own"}}
IDS = [None, 7, "", LONG, []]
# Type → field → invalid values.
WRONG = {
    "dispatch": {
        "__type__": [None, 7, "", [], {}],
        "__id__": IDS,
        "__dispatch_id__": [*IDS, "7", "d-", "d--1", "d-1.5", "d-1e3", "d-0x10"],
        "__caps__": [None, "vault", {"vault": 1}, [1], [["vault"]], [None], ["x"] * 1_025],
        "__dispatch__": [
            *[None, [], "vault.read", {}, {"op": "vault.read"}, {"params": {}}],
            *[{**REQUEST, "op": op} for op in (None, 7, "", LONG, ["vault.read"], {})],
            *[{**REQUEST, "params": params} for params in (None, [], "own", 7, True)],
        ],
    },
    "result": {
        "__id__": IDS,
        "__error__": [
            *[None, 7, True, [], {}, {"code": 7}, {"code": ""}, {"code": LONG}, {"code": None, "message": "x"}],
            *[{"code": "x", **more} for more in ({"message": 7}, {"traceback": []}, {"other": 1}, {"cause": "x"})],
            *[{"code": "x", "cause": cause} for cause in ([], {"op": 7}, {"code": None}, {"hint": "x"})],
        ],
    },
    "cancel": {"__dispatch_id__": [*IDS, "d-0", ["d-1"]], "__id__": ["x"]},
    "log": {"__id__": IDS, "stream": [None, 7, "", "stdin", ["stdout"]], "text": [None, 7, True, ["x"], {}]},
    "progress": {
        "__id__": IDS,
        "current": ["1", True, [], {}],
        "total": ["2", False, [2], {}],
        "message": [7, True, ["x"], {}],
    },
    "ready": {"version": [None, "1", 1.0, True, 2], "python": [None, 3, "", "x" * 65], "lockdown": [[], "full", True]},
}
REQUIRED = {
    "dispatch": ["__type__", "__id__", "__dispatch_id__", "__caps__", "__dispatch__"],
    "result": ["__id__"],
    "cancel": ["__dispatch_id__"],
    "log": ["stream", "text"],
    "progress": ["__id__"],
}


def with_field(kind, field, value):
    message = f"{{'__type__': {kind!r}, **messages()[{kind!r}], **json.loads({json.dumps({field: value})!r})}}"
    return f"import json\nline(**{message})\nawait asyncio.sleep(30)"


def without_field(kind, field):
    message = f"{{'__type__': {kind!r}, **messages()[{kind!r}]}}"
    return f"message = {message}\ndel message[{field!r}]\nline(**message)\nawait asyncio.sleep(30)"


MESSAGES = {
    f"{kind} with {field} {json.dumps(value):.40}": with_field(kind, field, value)
    for kind, fields in WRONG.items()
    for field, values in fields.items()
    for value in values
} | {f"{kind} without {field}": without_field(kind, field) for kind, fields in REQUIRED.items() for field in fields}


@pytest.fixture(scope="module")
def arena(fight):
    return fight(MESSAGES, together=8)


def test_message_with_a_missing_or_invalid_field_ends_its_worker(arena):
    assert arena.unexpected(MESSAGES, lambda attack: isinstance(attack.error, ProtocolViolation)) == {}
    arena.check_others()


def test_violations_are_recorded_and_executed_effects_are_granted(arena):
    assert len(arena.refused("worker.protocol")) == len(MESSAGES)
    arena.check_record()
