"""Verification: any change to the files is detected, and the result has its location and reason."""

import json
import shutil
from hashlib import sha256

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sideband.ledger import Head, Ledger, LedgerUnwritable, verify
from sideband.ledger._head import save_head
from sideband_store_sqlite import open_sqlite

MUTATIONS = ("byte", "insert", "delete", "drop", "repeat", "swap", "move", "cut", "cut inside", "append", "remove file")


def mutate(files, kind, data):
    """Return a copy of the files with one mutation."""
    files = dict(files)
    name = data.draw(st.sampled_from(sorted(files)), label="file")
    content = bytearray(files[name])
    lines = files[name].splitlines(keepends=True)
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    line = data.draw(st.integers(0, len(lines) - 1), label="line")
    if kind == "byte":
        content[at] = data.draw(st.integers(0, 255).filter(lambda value: value != content[at]), label="value")
    elif kind == "insert":
        content[at:at] = data.draw(st.binary(min_size=1, max_size=3), label="bytes")
    elif kind == "delete":
        del content[at : at + data.draw(st.integers(1, 200), label="count")]
    elif kind == "cut inside":
        del content[at:]
    elif kind == "append":
        content += data.draw(st.binary(min_size=1, max_size=20), label="bytes")
    elif kind == "remove file":
        del files[name]
        return files
    else:
        other = data.draw(st.integers(0, len(lines) - 1), label="other")
        if kind == "drop":
            del lines[line]
        elif kind == "repeat":
            lines.insert(other, lines[line])
        elif kind == "swap":
            lines[line], lines[other] = lines[other], lines[line]
        elif kind == "move":
            lines.insert(other, lines.pop(line))
        elif kind == "cut":
            del lines[line:]
        content = b"".join(lines)
    files[name] = bytes(content)
    return files


async def verdict_on(files, home, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    async with open_sqlite(home) as store:
        return await verify(folder, store)


def test_unmodified_ledger_is_intact(ledger_bytes, tmp_path):
    files, home = ledger_bytes
    assert len(files) > 2
    verdict = anyio.run(verdict_on, files, home, tmp_path / "copy")
    assert verdict.ok, verdict.problems
    assert verdict.problems == ()


@pytest.mark.parametrize("kind", MUTATIONS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_single_mutation_is_detected(ledger_bytes, tmp_path, kind, data):
    files, home = ledger_bytes
    changed = mutate(files, kind, data)
    assume(changed != files)
    verdict = anyio.run(verdict_on, changed, home, tmp_path / "copy")
    assert not verdict.ok
    assert verdict.problems


def reforged(lines):
    """Return the lines with valid hashes and numbers, as an attacker would forge them."""
    prev, out = "0" * 64, []
    for number, raw in enumerate(lines, 1):
        fields = {**json.loads(raw), "seq": number, "prev": prev}
        del fields["hash"]
        content = fields.pop("content", None)
        member = b""
        if content:
            text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
            fields["content_sha256"] = sha256(text).hexdigest()
            member = b', "content":' + text
        body = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        prev = sha256(prev.encode() + body).hexdigest()
        out.append(b'{"hash":"' + prev.encode() + b'",' + body[1:-1] + member + b"}\n")
    return out


@pytest.mark.anyio
@pytest.mark.parametrize("change", ["drop", "edit", "cut"])
async def test_forged_chain_is_detected_by_the_stored_head(folder, store, write, change):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 5)
    path = folder / "00000001.jsonl"
    lines = path.read_bytes().splitlines()
    if change == "drop":
        del lines[3]
    elif change == "cut":
        del lines[-3:]
    else:
        lines[1] = lines[1].replace(b"example.org", b"exbmple.org")
    path.write_bytes(b"".join(reforged(lines)))
    verdict = await verify(folder, store)
    assert not verdict.ok
    assert "head in the store" in str(verdict.problems[0]) or "truncated" in str(verdict.problems[0])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "case",
    [
        (lambda lines: [*lines[:2], lines[2].replace(b"done", b"doen"), *lines[3:]], 3, "its hash does not match"),
        (lambda lines: lines[:2] + lines[3:], 3, "entries 3 to 3 are missing"),
        (lambda lines: [*lines[:3], lines[1], *lines[3:]], 4, "expected entry 4, found entry 2"),
        (lambda lines: [*lines[:2], b"nonsense\n", *lines[2:]], 3, "not an entry"),
        (lambda lines: [*lines, b'{"hash":"'], 7, "incomplete"),
        (lambda lines: lines[:-2], 0, "truncated: entry 6 was written, but the last is 4"),
    ],
    ids=["changed", "removed", "repeated", "inserted", "torn", "cut"],
)
async def test_problem_has_segment_line_and_reason(folder, store, write, case):
    change, line, reason = case
    async with Ledger(folder, store) as ledger:
        await write(ledger, 2)
    path = folder / "00000001.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    verdict = await verify(folder, store)
    assert not verdict.ok
    problem = verdict.problems[0]
    assert (problem.line, problem.segment) == (line, "00000001.jsonl" if line else "")
    assert reason in problem.reason
    assert reason in str(problem)


@pytest.mark.anyio
async def test_missing_segment_is_named(folder, store, write):
    async with Ledger(folder, store, rotate_bytes=1500) as ledger:
        await write(ledger, 10)
    (folder / "00000002.jsonl").unlink()
    verdict = await verify(folder, store)
    assert "segment 2 is missing" in str(verdict.problems[0])


@pytest.mark.anyio
async def test_removed_ledger_is_detected(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    shutil.rmtree(folder)
    verdict = await verify(folder, store)
    assert not verdict.ok
    assert "entry 4 was written, but the last is 0" in str(verdict.problems[0])


@pytest.mark.anyio
async def test_missing_ledger_without_a_head_is_intact(folder, store):
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries, verdict.head) == (True, 0, None)


@pytest.mark.anyio
async def test_head_without_any_lines_is_intact(folder, store, write):
    folder.mkdir()
    (folder / "hosts").write_text("blocks the folder of host files")
    async with Ledger(folder, store) as ledger:
        with pytest.raises(LedgerUnwritable):
            await write(ledger, 1)
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries) == (True, 0), verdict.problems


@pytest.mark.anyio
async def test_lost_head_is_a_problem(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    await store.delete("ledger/head")
    assert "has no head" in str((await verify(folder, store)).problems[0])


@pytest.mark.anyio
async def test_lost_head_remains_a_notice_after_a_later_host_stores_one(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    await store.delete("ledger/head")
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    verdict = await verify(folder, store)
    assert verdict.ok
    assert ["had no head" in str(notice) for notice in verdict.notices] == [True]


@pytest.mark.anyio
async def test_first_host_causes_no_notice(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
        assert (await verify(folder, store)).ok
    assert (await verify(folder, store)).notices == ()


@pytest.mark.anyio
async def test_first_host_that_starts_during_verification_is_not_a_problem(folder, store, write):
    class Meanwhile:
        """A store that starts a host when the head is read."""

        async def get(self, key):
            found = await store.get(key)
            if found is None:
                async with Ledger(folder, store) as ledger:
                    await write(ledger, 1)
            return found

    verdict = await verify(folder, Meanwhile())
    assert verdict.ok, verdict.problems
    assert verdict.entries == 4


@pytest.mark.anyio
async def test_older_head_does_not_replace_a_newer_one(store):
    await save_head(store, "ledger/head", Head(1, 500, 5, "b" * 64))
    await save_head(store, "ledger/head", Head(1, 300, 3, "a" * 64))
    assert (await store.get("ledger/head")).value["seq"] == 5


@pytest.mark.anyio
async def test_truncation_remains_a_problem_after_later_hosts_write(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 3)
    path = folder / "00000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-4]))
    for _ in range(2):
        async with Ledger(folder, store) as ledger:
            await write(ledger, 5)
    verdict = await verify(folder, store)
    assert not verdict.ok
    assert ["entries were missing" in str(problem) for problem in verdict.problems] == [True]


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["cut", "removed", "replaced"])
async def test_tampering_while_a_host_is_running_is_detected(folder, store, write, how):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 3)
        path = folder / "00000001.jsonl"
        kept = b"".join(path.read_bytes().splitlines(keepends=True)[:3])
        if how == "cut":
            path.write_bytes(kept)
        else:
            path.unlink()
            if how == "replaced":
                path.write_bytes(kept)
        await write(ledger, 3)
    verdict = await verify(folder, store)
    assert not verdict.ok
    assert any("entries were missing" in str(problem) for problem in verdict.problems)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_verification_during_writes_finds_no_problem(folder, store, write):
    async def keep_writing():
        while True:
            await write(ledger, 1)
            await anyio.lowlevel.checkpoint()

    ledger = Ledger(folder, store, rotate_bytes=5000, head_interval=0.001)
    async with ledger, anyio.create_task_group() as tasks:
        tasks.start_soon(keep_writing)
        for _ in range(10):
            verdict = await verify(folder, store)
            assert verdict.ok, verdict.problems
        tasks.cancel_scope.cancel()
