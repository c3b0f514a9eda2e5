"""Messages of every kind, each with one field that is missing or of a wrong type. Each ends its worker."""

import json

import pytest
from sideband.workers import ProtocolViolation

LONG = "x" * 129
REQUEST = {"op": "vault.read", "params": {"name": "own"}}
IDS = [None, 7, "", LONG, []]
# Kind → field → values that it may not have.
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
    said = f"{{'__type__': {kind!r}, **messages()[{kind!r}], **json.loads({json.dumps({field: value})!r})}}"
    return f"import json\nline(**{said})\nawait asyncio.sleep(30)"


def without_field(kind, field):
    said = f"{{'__type__': {kind!r}, **messages()[{kind!r}]}}"
    return f"said = {said}\ndel said[{field!r}]\nline(**said)\nawait asyncio.sleep(30)"


SAID = {
    f"{kind} with {field} {json.dumps(value):.40}": with_field(kind, field, value)
    for kind, fields in WRONG.items()
    for field, values in fields.items()
    for value in values
} | {f"{kind} without {field}": without_field(kind, field) for kind, fields in REQUIRED.items() for field in fields}


@pytest.fixture(scope="module")
def arena(fight):
    return fight(SAID, together=8)


@pytest.mark.parametrize("said", SAID)
def test_a_message_with_a_field_that_is_missing_or_wrong_ends_its_worker(arena, said):
    assert isinstance(arena.attacks[said].error, ProtocolViolation)
    arena.check_others(said)


def test_all_of_them_stand_in_the_ledger_and_no_effect_was_executed_without_a_grant(arena):
    assert len(arena.refused("worker.protocol")) == len(SAID)
    arena.check_record()
