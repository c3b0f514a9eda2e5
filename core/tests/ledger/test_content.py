"""The content of lines: committed to by a salted digest, and erasable without breaking the chain."""

import json
import math
import re
from contextlib import suppress
from hashlib import sha256

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sideband.ledger import Intent, Ledger, Outcome, find, query, tail, verify
from sideband.ledger._drafts import intent_draft, outcome_draft
from sideband.ledger._fields import line_fields
from sideband.ledger._lines import ERASABLE, draft, parse, seal
from sideband.ops import Level, Origin

pytestmark = pytest.mark.anyio

# A line that an earlier version wrote, with parameters that look like content.
FIRST = {
    "effect": "0199-1",
    "grant": ["http"],
    "key": "k",
    "kind": "intent",
    "op": "http.get",
    "origin": {"principal": "user"},
    "params": {"a": ", ", "content": {"b": 1}},
    "prev": "0" * 64,
    "seq": 1,
    "time": "2026-01-01T12:00:00.001000+00:00",
    "v": 1,
}

text = st.text(max_size=20) | st.sampled_from(['"', "\ud800", ', "content":{}', '"},"content":null}', "\n"])
names = st.none() | text
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
params = st.dictionaries(text, plain, max_size=4)
origins = st.builds(Origin, text, *[names] * 7)
capabilities = st.lists(text, max_size=3).map(tuple)
decisions = st.lists(params, max_size=2).map(tuple)
intents = st.builds(
    Intent,
    effect=text,
    op=text,
    params=params,
    grant=capabilities,
    origin=origins,
    key=names,
    level=st.none() | st.sampled_from(Level),
    decisions=decisions,
    isolation=names,
    granted_by=capabilities,
    within=names,
    code=text,
    rights=capabilities,
    params_digest=text,
)
outcomes = st.builds(
    Outcome,
    effect=text,
    op=text,
    status=text,
    key=names,
    error=st.none() | params,
    ms=st.none() | st.floats() | st.integers(-(10**6), 10**6),
    bytes=st.none() | st.integers(0),
    decisions=decisions,
    result=plain,
    state=names,
    rights=st.none() | capabilities,
    note=params,
)
RESERVED = {"content", "content_sha256", "hash", "prev", "seq", "time", "v"}
KEYED_INTENT = {"code", "rights", "params_digest"}
KEYED_OUTCOME = {"result", "state", "rights"}


def written(line):
    """Return the fields of a draft when it is read back."""
    raw, _ = seal(line, 7, "2026-01-01", "f" * 64)
    found = parse(raw[:-1])
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    assert (found.intact, found.content) in {(True, "present"), (True, "none")}
    return {name: value for name, value in found.fields.items() if name != "content_sha256"}, raw


def without(raw):
    """Return the line without what is random in it."""
    return re.sub(rb'"(content_sha256|hash|salt)":"[0-9a-f]+"', b"", raw)


@given(intents)
def test_line_of_an_intent_equals_the_plain_encoding_of_its_fields(intent):
    keyed = set() if intent.key is not None else KEYED_INTENT
    names = [one.name for one in attrs.fields(Intent) if one.name not in {"note", "time"} | keyed]
    fast, plain = written(intent_draft(intent)), written(draft(line_fields("intent", intent, names)))
    assert (fast[0], without(fast[1])) == (plain[0], without(plain[1]))


@given(outcomes)
def test_line_of_an_outcome_equals_the_plain_encoding_of_its_fields(outcome):
    request = {"params", "grant", "origin", "level", "isolation", "within"}
    keyed = set() if outcome.key is not None else KEYED_OUTCOME
    names = [one.name for one in attrs.fields(Outcome) if one.name not in request | keyed]
    fast = written(outcome_draft(outcome, follows=True))
    plain = written(draft(line_fields("outcome", outcome, names)))
    assert (fast[0], without(fast[1])) == (plain[0], without(plain[1]))


def erase(path, needle):
    """Erase the content of the lines that contain ``needle``, as documented, and return how many there are."""
    lines = path.read_bytes().splitlines(keepends=True)
    count = 0
    for number, line in enumerate(lines):
        hashed, separator, content = line.partition(b', "content":')
        if content and needle in line:
            count += 1
            lines[number] = hashed + separator + b"null".ljust(len(content) - 2) + b"}\n"
            assert len(lines[number]) == len(line)
    path.write_bytes(b"".join(lines))
    return count


async def record(ledger, *, key=None):
    effect = ledger.new_effect_id()
    origin = Origin(skill="demo")
    intent = Intent(effect=effect, op="mail.send", params={"to": "ada@example.org"}, origin=origin, key=key)
    await ledger.intent(intent, durable=False)
    await ledger.note(effect, "mail.send", {"draft": "d-1"})
    error = {"code": "op.failed", "message": "ada is away"}
    await ledger.outcome(Outcome(effect=effect, op="mail.send", status="failed", error=error))
    return effect


async def test_erased_content_breaks_neither_the_chain_nor_later_writing(folder, store):
    async with Ledger(folder, store) as ledger:
        await record(ledger)
        path = folder / "00000001.jsonl"
        assert erase(path, b"") == 3
        assert b"ada@" not in path.read_bytes()
        await record(ledger)
    async with Ledger(folder, store) as ledger:
        await record(ledger)
    verdict = await verify(folder, store)
    assert [str(problem) for problem in verdict.problems] == [
        "00000001.jsonl, line 2: the content was erased, also in 2 later lines"
    ]
    assert verdict.entries == 13


async def test_host_continues_after_the_last_line_was_erased(folder, store):
    async with Ledger(folder, store) as ledger:
        await ledger.intent(Intent(effect=ledger.new_effect_id(), op="mail.send", params={"a": 1}), durable=True)
        erase(folder / "00000001.jsonl", b"mail.send")
        async with Ledger(folder, store) as other:
            await record(other)
    assert [problem.line for problem in (await verify(folder, store)).problems] == [2]


async def test_effect_with_erased_content_is_found_without_it(folder, store):
    async with Ledger(folder, store) as ledger:
        effect = await record(ledger)
        await find(folder, effect)  # so that the index has the lines
        erase(folder / "00000001.jsonl", b"")
        (found,) = await query(folder, op="mail", skill="demo")
        assert (found.effect, found.status, found.erased) == (effect, "failed", True)
        assert (found.params, found.error, found.note) == ({}, None, {})
        assert await query(folder, text="ada@") == ()
        assert [entry.kind for entry in await tail(folder)] == ["open", "intent", "note", "outcome"]
        assert not (await find(folder, await record(ledger))).erased


async def test_changed_content_is_a_problem_and_is_not_read(folder, store):
    async with Ledger(folder, store) as ledger:
        effect = await record(ledger)
    path = folder / "00000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b"ada@", b"eve@"))
    found = await find(folder, effect)
    assert (found.params, found.erased) == ({}, True)
    assert "the content was changed" in str((await verify(folder, store)).problems[0])


async def test_content_that_was_added_to_a_line_is_a_problem_and_is_not_read(folder, store):
    async with Ledger(folder, store) as ledger:
        effect = ledger.new_effect_id()
        await ledger.outcome(Outcome(effect=effect, op="x.y", status="done"))
    path = folder / "00000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"v":2}\n', b'"v":2, "content":{"result":1,"error":{}}}\n'))
    assert {str(one).partition(": ")[2] for one in (await verify(folder, store)).problems} >= {
        "the content was changed: it does not match its digest"
    }
    assert not any(set(entry.fields) & ERASABLE for entry in await tail(folder))


async def test_members_after_the_content_do_not_replace_those_before_it(folder, store):
    async with Ledger(folder, store) as ledger:
        await record(ledger)
    path = folder / "00000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"}}\n', b'"},"op":"http.get"}\n'))
    assert {entry.fields["op"] for entry in await tail(folder) if "effect" in entry.fields} == {"mail.send"}
    assert "changed" in str((await verify(folder, store)).problems[0])


async def test_equal_content_has_another_digest_on_each_line(folder, store):
    async with Ledger(folder, store) as ledger:
        for _ in range(20):
            await record(ledger)
    digests = re.findall(rb'"content_sha256":"([0-9a-f]+)"', (folder / "00000001.jsonl").read_bytes())
    assert len(set(digests)) == len(digests) == 60


async def test_lines_of_version_1_remain_readable_and_are_verified_in_the_same_chain(folder, store):
    body = json.dumps(FIRST, separators=(",", ":"))
    digest = sha256(f"{FIRST['prev']}{body}".encode()).hexdigest()
    folder.mkdir()
    path = folder / "00000001.jsonl"
    path.write_text(f'{{"hash":"{digest}",{body[1:]}\n')
    async with Ledger(folder, store) as ledger:
        await record(ledger)
    found = await find(folder, "0199-1")
    assert (found.params, found.erased) == ({"a": ", ", "content": {"b": 1}}, False)
    assert (await verify(folder, store)).ok
    path.write_text(path.read_text().replace('"b":1', '"b":2'))
    assert "its hash does not match" in str((await verify(folder, store)).problems[0])


def test_number_that_json_cannot_represent_is_recorded_as_text():
    line, _ = written(outcome_draft(Outcome(effect="e", op="x.y", status="done", ms=math.nan), follows=True))
    assert line["ms"] == "<nan>"


async def test_writing_the_lines_of_an_effect_takes_little_work(folder, store, count_calls):
    async with Ledger(folder, store) as ledger:
        await record(ledger)
        effect = ledger.new_effect_id()
        intent = Intent(effect=effect, op="x.y", params={"a": 1}, origin=Origin(skill="demo"))
        outcome = Outcome(effect=effect, op="x.y", status="done", ms=1.5, bytes=7)

        def write():
            for line in (ledger.intent(intent, durable=False), ledger.outcome(outcome)):
                with suppress(StopIteration):
                    line.send(None)

        calls = count_calls(write)
    assert calls <= 60, f"{calls} calls: the path of each effect has become longer; shorten it"


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.integers(), max_size=8))
@example({"time_": 1, "tools": 2, "user": 3})
def test_line_has_each_field_whatever_its_name(fields):
    fields = {name: value for name, value in fields.items() if name not in RESERVED | ERASABLE}
    found, _ = written(draft({"kind": "load", **fields}))
    assert {name: value for name, value in found.items() if name not in RESERVED} == {"kind": "load", **fields}


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_field_that_the_line_sets_itself_is_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` is set when the line is written"):
        draft({"kind": "load", name: 1})
