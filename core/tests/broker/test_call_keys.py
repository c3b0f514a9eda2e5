"""Idempotency keys of calls: each effect that is not idempotent gets a key derived from that of the call."""

import errno
import json
import os
import re
import time
from contextlib import nullcontext

import anyio
import pytest
from pydantic import BaseModel, Field
from sideband.broker import Attempt, Call, KeyReused
from sideband.broker._values import digest_of
from sideband.calls._keyed_attempts import attempt_with_key
from sideband.ledger import Intent, LedgerError, query
from sideband.ledger._lines import ERASABLE
from sideband.ops import EffectUnknown, Grant, Level, OpContext, Origin, op

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


class Secret(BaseModel):
    pin: str = Field(repr=False)


class Amount(BaseModel):
    amount: int = 1
    raw: bytes = b""
    table: dict[str, int] = {}


@pytest.fixture
def bank(family):
    ran = []

    @op("bank.pay", level=Level.RESTRICTED)
    async def pay(params: Amount, ctx: OpContext) -> int:
        ran.append("pay")
        return len(ran)

    @op("bank.look", level=Level.SAFE)
    async def look(params: Amount, ctx: OpContext) -> int:
        ran.append("look")
        return len(ran)

    return family("bank", pay, look), ran


def call(key):
    return Call(
        "c", Grant.of([]), "d", Origin(), anyio.current_time() + 60, attempt=key and Attempt.first(key, seed="s")
    )


async def test_repeated_call_repeats_reads_but_no_other_effects(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        for _ in range(2):
            again = call("k")
            for name in ("pay", "look", "pay"):
                await host.broker.dispatch(again, f"bank.{name}", {})
    # Equal effects of one call are numbered, so the second payment has its own key.
    assert ran == ["pay", "look", "pay", "look"]


async def test_different_parameters_make_a_new_effect_regardless_of_order(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        for params in (
            {"raw": b"a"},
            {"raw": b"b"},
            {"table": {"x": 1, "y": 2}},
            {"table": {"y": 2, "x": 1}},
            {"amount": 1, "raw": b"a"},
        ):
            await host.broker.dispatch(call("k"), "bank.pay", params)
    assert ran == ["pay"] * 3


async def test_parameters_cannot_be_guessed_from_a_ledger_whose_content_was_erased(make_host, bank, ledger_lines):
    """The seed and the digest are content, which can be erased. Keys are not. The index has no content."""
    plugin, _ = bank
    async with make_host(plugin) as host:
        for name in ("pay", "look"):
            await host.broker.dispatch(call("k"), f"bank.{name}", {"amount": 7})
        folder = host.ledger.folder
        assert len(await query(folder, op="bank")) == 2
    kept = [
        {name: value for name, value in line.items() if name not in {*ERASABLE, "content"}} for line in ledger_lines()
    ]
    assert len([line for line in kept if "key" in line]) == 4
    digest = digest_of(Amount(amount=7))[:16]
    assert digest not in json.dumps(kept)
    others = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".jsonl"]
    assert "index.sqlite" in {file.name for file in others}
    for file in others:
        assert digest.encode() not in file.read_bytes()


def test_keys_of_effects_differ_for_another_seed():
    first, same, other = (Attempt.first("k", seed=seed) for seed in ("a", "a", ""))
    keys = [one.effect_key("e", "bank.pay", digest_of(Amount())) for one in (first, same, other)]
    assert keys[0] == keys[1] != keys[2]


async def test_call_without_a_key_repeats_its_effects(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        for _ in range(2):
            await host.broker.dispatch(call(None), "bank.pay", {})
    assert ran == ["pay", "pay"]


async def test_revealed_secret_is_not_recorded_but_requested_again(make_host, family):
    ran = []

    @op("safe.reveal", level=Level.SAFE, reveals=True)
    async def reveal(params: Amount, ctx: OpContext) -> str:
        ran.append("reveal")
        ctx.protect("hush-hush-1", "code")
        return "hush-hush-1"

    async with make_host(family("safe", reveal)) as host:
        for _ in range(2):
            again = call(None)
            again.attempt = await host.broker.attempts.again("k", principal="user", started="", seed="s", stops=True)
            assert await host.broker.dispatch(again, "safe.reveal", {}) == "hush-hush-1"
        records = await query(host.ledger.folder, op="safe.reveal")
    assert ran == ["reveal", "reveal"]
    assert {(one.key, one.result) for one in records} == {(None, None)}


async def test_read_has_no_key_if_its_answer_cannot_be_used_again(make_host, family):
    """A secret parameter is in no digest, and the answer of a child effect belongs to that of its parent."""

    @op("safe.check", level=Level.SAFE)
    async def check(params: Secret, ctx: OpContext) -> str:
        return f"{params.pin} is right"

    @op("safe.tell", level=Level.SAFE, fire_and_forget=True)
    async def tell(params: Amount, ctx: OpContext) -> None:
        pass

    @op("safe.look", level=Level.SAFE)
    async def look(params: Amount, ctx: OpContext) -> str:
        return "seen"

    @op("safe.open", level=Level.RESTRICTED)
    async def open_safe(params: Amount, ctx: OpContext) -> str:
        return await ctx.dispatch("safe.look", {})

    async with make_host(family("safe", check, tell, look, open_safe)) as host:
        again = call("k")
        await host.broker.dispatch(again, "safe.check", {"pin": "1"})
        await host.broker.dispatch(again, "safe.tell", {})
        await host.broker.dispatch(again, "safe.open", {})
        records = await query(host.ledger.folder)
    assert {one.op for one in records if one.key is None} == {"safe.check", "safe.tell", "safe.look"}


async def test_change_with_a_secret_parameter_is_neither_answered_nor_repeated(make_host, family):
    @op("safe.enter", level=Level.RESTRICTED)
    async def enter(params: Secret, ctx: OpContext) -> str:
        return f"{params.pin} is right"

    async with make_host(family("safe", enter)) as host:
        for pin in ("1", "2"):
            again = call(None)
            again.attempt = await host.broker.attempts.again("k", principal="user", started="", seed="s", stops=True)
            with nullcontext() if pin == "1" else pytest.raises(KeyReused):
                await host.broker.dispatch(again, "safe.enter", {"pin": pin})


async def test_read_is_requested_again_if_its_recorded_answer_was_erased(make_host, bank):
    plugin, ran = bank
    answers = []
    for _ in range(3):
        async with make_host(plugin) as host:
            again = call(None)
            again.attempt = await host.broker.attempts.again("k", principal="user", started="", seed="s", stops=True)
            answers.append(await host.broker.dispatch(again, "bank.look", {}))
        if len(answers) == 2:
            (path,) = (host.home / "ledger").glob("*.jsonl")
            path.write_bytes(re.sub(rb'(?<="content":)\{"result.*(?=\}\n)', blank, path.read_bytes()))
    assert answers == [1, 1, 2]
    assert ran == ["look", "look"]


def blank(content):
    return b"null".ljust(len(content[0]))


async def test_equal_large_answers_of_two_calls_are_kept_until_each_has_ended(make_host):
    async with make_host() as host:
        attempts, first, second = host.broker.attempts, Attempt.first("a"), Attempt.first("b")
        digest = await attempts.keep(first, "large")
        assert await attempts.keep(second, "large") == digest
        await attempts.forget(first)
        await host.sync()
        assert await attempts.kept(second, digest) == "large"
        await attempts.forget(second)
        await host.sync()
        with pytest.raises(LookupError):
            await attempts.kept(second, digest)
    assert list((host.home / "replays").iterdir()) == []


async def test_large_answer_whose_host_died_before_it_recorded_it_is_deleted_with_the_call(make_host):
    async with make_host() as host:
        attempts, first = host.broker.attempts, Attempt.first("a")
        await attempts.keep(first, "large")
        again = await attempts.again("a", principal="user", started=first.started, seed=first.seed, stops=True)
        await attempts.forget(again)
    assert list((host.home / "replays").iterdir()) == []


async def test_large_answers_are_kept_and_deleted_without_waiting_for_the_disk(make_host, syncs, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: syncs.append("a file or folder"))
    async with make_host() as host:
        attempts, ended, running = host.broker.attempts, Attempt.first("a"), Attempt.first("b")
        await host.sync()
        syncs.clear()
        digest = await attempts.keep(ended, "large")
        await attempts.forget(ended)
        await attempts.keep(running, "large")
        assert syncs == []
        assert await attempts.kept(ended, digest) == "large"  # until the outcome of its call is on disk
    (left,) = (host.home / "replays").iterdir()
    assert left == attempts._answers(running)


async def test_large_answers_are_kept_if_the_outcomes_of_their_calls_cannot_be_synced(make_host, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, "no disk")

    async with make_host() as host:
        attempts, ended = host.broker.attempts, [Attempt.first(str(number)) for number in range(100)]
        (digest,) = {await attempts.keep(one, "large") for one in ended}
        await host.broker.record_refusal("bank.pay", Origin(), "worker.protocol", "a line to sync")
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", fail)
            for one in ended:
                await attempts.forget(one)  # which fails no call
            with pytest.raises(LedgerError):
                await host.sync()
        assert [await attempts.kept(one, digest) for one in ended] == ["large"] * 100


async def test_large_answers_of_many_ended_calls_are_deleted_before_the_host_is_closed(make_host):
    async with make_host() as host:
        for number in range(100):
            attempt = Attempt.first(str(number))
            await host.broker.attempts.keep(attempt, "large")
            await host.broker.attempts.forget(attempt)
        assert len(list((host.home / "replays").iterdir())) < 70


async def test_large_answer_that_is_written_in_part_is_lost(make_host):
    async with make_host() as host:
        attempts, attempt = host.broker.attempts, Attempt.first("a")
        digest = await attempts.keep(attempt, "large")
        (file,) = (host.home / "replays").glob("*/*")
        file.write_bytes(file.read_bytes()[:-2])
        with pytest.raises(LookupError):
            await attempts.kept(attempt, digest)
        assert await attempts.keep(attempt, "large") == digest
        assert await attempts.kept(attempt, digest) == "large"


async def test_large_answers_of_a_call_that_is_never_resumed_are_deleted_after_a_week(make_host):
    async with make_host() as host:
        await host.broker.attempts.keep(Attempt.first("a"), "old")
        (old,) = (host.home / "replays").iterdir()
        new = Attempt.first("b")
        digest = await host.broker.attempts.keep(new, "new")
    week = time.time() - 7 * 86_400
    os.utime(old, (week - 60, week - 60))
    for folder in (host.home / "replays").iterdir():
        if folder != old:
            os.utime(folder, (week + 600, week + 600))
    async with make_host() as host:
        assert not old.exists()
        assert await host.broker.attempts.kept(new, digest) == "new"


async def test_call_is_refused_if_each_of_its_beginnings_was_interrupted(make_host, bank, leave_running):
    """With a new seed, its effects would have other keys than those of an earlier call that began."""
    plugin, _ = bank
    no_parameters = digest_of(Nothing())
    for number in range(9):
        key, origin = f"k:begin~{number}", Origin(plugin="host")
        await leave_running(Intent(effect="", op="skill.begin", key=key, origin=origin, params_digest=no_parameters))
    async with make_host(plugin) as host:
        with pytest.raises(EffectUnknown):
            await attempt_with_key(host.broker, call(None), "k")
        assert (await attempt_with_key(host.broker, call(None), "other")).seed
