"""Claims on idempotency keys: of hosts with one home or one shared store, and after a crash at any step."""

import signal
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel
from sideband import Host, Plugin, StoreError
from sideband.broker import KeyReused, LedgerClaims, Replay, claims_of
from sideband.ledger import Intent, Ledger, Outcome, verify
from sideband.ops import EffectInFlight, EffectUnknown, Grant, Level, OpContext, Origin, op
from sideband_store_sqlite import SqliteStore, open_sqlite

pytestmark = pytest.mark.anyio

PAY = {"op": "bank.pay", "params_digest": "d"}

# A host that pays once for each key, and prints the keys for which it paid. The first argument is the home. It kills
# itself before or after the given write to the ledger, or while it pays.
PAYER = """
import os, signal, sys
from pathlib import Path
from types import SimpleNamespace

import anyio
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import EffectInFlight, EffectUnknown, Level, OpContext, OpFamily, op

home, count, moment, number = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
write, writes = os.write, 0


class Payment(BaseModel):
    key: str


@op("bank.pay", level=Level.RESTRICTED)
async def pay(params: Payment, ctx: OpContext) -> str:
    await anyio.sleep(0)
    print(params.key, flush=True)
    if moment == "during":
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


def dying(descriptor, data):
    global writes
    writes += data.startswith(b'{"hash"')
    if moment == "before" and writes == number:
        os.kill(os.getpid(), signal.SIGKILL)
    written = write(descriptor, data)
    if moment == "after" and writes == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return written


async def main():
    bank = SimpleNamespace(sideband_ops=lambda: OpFamily(name="bank", ops=(pay,)))
    plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin), Plugin("op", "bank", bank)]
    async with Host(home=home, plugins=plugins, autoload=False) as host:
        os.write = dying
        sys.stdin.readline()
        for number in range(count):
            try:
                assert await host.op("bank.pay", {"key": f"k{number}"}, key=f"k{number}") == "paid"
            except (EffectInFlight, EffectUnknown) as error:
                print(error.code, file=sys.stderr)


anyio.run(main)
"""


@pytest.fixture
def payer(tmp_path):
    """Return a function that starts a payer. It begins to pay when it gets a line."""
    started = []

    def start(count=1, moment="never", number=0):
        words = [sys.executable, "-c", PAYER, str(tmp_path / "home"), str(count), moment, str(number)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen(words, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


async def test_processes_that_race_for_keys_run_each_effect_once(payer, tmp_path):
    hosts = [payer(150) for _ in range(3)]
    for host in hosts:
        host.stdin.write("\n")
        host.stdin.flush()
    ended = [await anyio.to_thread.run_sync(host.communicate) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0, 0], ended
    paid = [key for out, _ in ended for key in out.split()]
    assert sorted(paid) == sorted(f"k{number}" for number in range(150))
    async with open_sqlite(tmp_path / "home" / "store") as store:
        assert (await verify(tmp_path / "home" / "ledger", store)).ok


@pytest.mark.parametrize(
    ("moment", "number", "rest"),
    [
        ("before", 1, "k0"),  # the `open` line
        ("after", 1, "k0"),
        ("before", 2, "k0"),  # the intent
        ("after", 2, "effect.unknown"),
        ("during", 0, "effect.unknown"),
        ("before", 3, "effect.unknown"),  # the outcome
        ("after", 3, ""),
    ],
)
async def test_host_that_is_killed_at_any_step_leaves_a_key_that_the_next_host_settles(payer, moment, number, rest):
    first, second = payer(1, moment, number), None
    out, _ = await anyio.to_thread.run_sync(first.communicate, "\n")
    assert first.returncode == -signal.SIGKILL
    second = payer()
    again, errors = await anyio.to_thread.run_sync(second.communicate, "\n")
    assert (second.returncode, (again + errors).strip()) == (0, rest)
    assert len((out + again).split()) == (0 if (moment, number) == ("after", 2) else 1)


@pytest.fixture
async def ledgers(tmp_path):
    """Return the claims of two hosts with one home, and their ledgers."""
    folder = tmp_path / "ledger"
    async with open_sqlite(tmp_path) as store, Ledger(folder, store) as one, Ledger(folder, store) as two:
        yield LedgerClaims(one, store), LedgerClaims(two, store), one, two


@pytest.fixture
async def machines(tmp_path, shared_store):
    """Return the claims of two hosts with different homes that share a store, and their ledgers."""
    async with AsyncExitStack() as stack:
        ledgers, claims = [], []
        for name in ("one", "two"):
            store = await stack.enter_async_context(shared_store.open_shared(tmp_path / name / "store"))
            ledgers.append(await stack.enter_async_context(Ledger(tmp_path / name / "ledger", store)))
            claims.append(await claims_of(store, ledgers[-1]))
        yield *claims, *ledgers


@pytest.fixture(params=["ledgers", "machines"])
def hosts(request):
    return request.getfixturevalue(request.param)


def intent(ledger, **fields):
    return Intent(**{"effect": ledger.new_effect_id(), "key": "k", **PAY, **fields})


async def settle(claims, ledger, earlier, state="done", **fields):
    status = state if state in {"done", "failed", "unknown"} else "unknown"
    outcome = Outcome(effect=earlier.effect, op="bank.pay", key="k", status=status, state=state, **fields)
    await ledger.outcome(outcome)
    await claims.settle(outcome, earlier.origin)


async def test_key_is_claimed_once(hosts):
    one, two, ledger, other = hosts
    assert await one.take(intent(ledger), durable=False) is None
    for claims, of in ((one, ledger), (two, other)):
        with pytest.raises(EffectInFlight):
            await claims.take(intent(of), durable=False)


async def test_result_is_returned_to_the_other_host(hosts):
    one, two, ledger, other = hosts
    same = {"code": "c", "origin": Origin(plugin="bank"), "rights": ("bank",)}
    first = intent(ledger, **same)
    await one.take(first, durable=False)
    await settle(one, ledger, first, result=[b"1"], rights=("bank:name=a",))
    replay = Replay(first.effect, [b"1"], Grant.parse(["bank:name=a"]))
    assert await two.take(intent(other, **same), durable=False) == replay
    assert await two.recall("k") == ("done", [b"1"])


@pytest.mark.parametrize(
    "change",
    [
        {"op": "bank.refund"},
        {"params_digest": "e"},
        {"params_digest": ""},
        {"code": "other"},
        {"origin": Origin(plugin="other")},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_key_is_rejected_for_another_effect_until_it_has_certainly_not_happened(hosts, change):
    one, two, ledger, other = hosts
    first = intent(ledger)
    await one.take(first, durable=False)
    for state in ("repeatable", "unknown", "done"):
        await settle(one, ledger, first, state)
        with pytest.raises(KeyReused):
            await two.take(intent(other, **change), durable=False)
    await settle(one, ledger, first, "failed")
    assert await two.take(intent(other, **change), durable=False) is None


async def test_unknown_effect_remains_unknown(hosts):
    one, two, ledger, other = hosts
    first = intent(ledger)
    await one.take(first, durable=False)
    await settle(one, ledger, first, "unknown")
    with pytest.raises(EffectUnknown, match=first.effect):
        await two.take(intent(other), durable=False)
    assert await two.recall("k") == ("unknown", None)


async def race(hosts):
    """Take one key ten times at once on two hosts, and return the answers of those that may use it."""
    one, two, ledger, other = hosts
    won = []

    async def take(claims, of):
        with suppress(EffectInFlight):
            won.append(await claims.take(intent(of), durable=True))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(take, one, ledger)
            tasks.start_soon(take, two, other)
    return won


@pytest.mark.parametrize("state", ["failed", "repeatable"])
async def test_concurrent_retries_run_once(hosts, state):
    one, _, ledger, _ = hosts
    first = intent(ledger)
    await one.take(first, durable=False)
    await settle(one, ledger, first, state)
    assert await race(hosts) == [None]


def erase(folder, kind):
    """Erase the content of the lines of a kind."""
    (path,) = folder.glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        hashed, separator, content = line.partition(b', "content":')
        if content and kind in hashed:
            lines[number] = hashed + separator + b"null".ljust(len(content) - 2) + b"}\n"
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("erased", [b'"kind":"intent"', b'"kind":"outcome"'])
async def test_key_of_an_effect_with_erased_content_is_neither_returned_nor_repeated(ledgers, erased):
    one, two, ledger, other = ledgers
    first = intent(ledger)
    await one.take(first, durable=False)
    await settle(one, ledger, first, result="to ada@example.org")
    erase(ledger.folder, erased)
    with pytest.raises(KeyReused):
        await two.take(intent(other), durable=False)
    assert await two.recall("k") == ("unknown", None)


class Nothing(BaseModel):
    pass


@op("bank.pay", level=Level.CONTROLLED)
async def pay(params: Nothing, ctx: OpContext) -> str:
    return "paid"


async def test_concurrent_first_uses_run_once(hosts):
    assert await race(hosts) == [None]


async def test_each_principal_has_its_own_keys_except_for_undo_steps(hosts):
    one, two, ledger, other = hosts
    for principal in ("user", "web:a/k", "web:a"):
        assert await one.take(intent(ledger, origin=Origin(principal=principal)), durable=False) is None
    assert await one.take(intent(ledger, key="undo:e"), durable=False) is None
    with pytest.raises(EffectInFlight):
        await two.take(intent(other, key="undo:e", origin=Origin(principal="web:a")), durable=False)


async def test_key_is_free_if_its_effect_was_recorded_but_not_claimed(machines):
    one, two, ledger, other = machines
    earlier = intent(ledger)
    await ledger.intent(earlier, durable=True)
    assert await two.take(intent(other), durable=False) is None
    await settle(one, ledger, earlier, "unknown")
    with pytest.raises(EffectInFlight):
        await one.take(intent(ledger), durable=False)


async def test_claim_of_a_machine_that_died_is_unknown(machines, tmp_path, shared_store):
    claims, _, ledger, _ = machines
    async with shared_store.open_shared(tmp_path / "three" / "store") as store:
        async with Ledger(tmp_path / "three" / "ledger", store) as dead:
            first = intent(dead)
            await (await claims_of(store, dead)).take(first, durable=True)
        for _ in range(2):
            with pytest.raises(EffectInFlight):
                await claims.take(intent(ledger), durable=False)
    for _ in range(2):
        with pytest.raises(EffectUnknown, match=first.effect):
            await claims.take(intent(ledger), durable=False)
    assert await claims.recall("k") == ("unknown", None)


@pytest.mark.parametrize("next_step", ["another effect", "close"])
async def test_outcome_that_the_store_did_not_take_is_stored_later(machines, caplog, next_step):
    one, two, ledger, other = machines
    first = intent(ledger)
    await one.take(first, durable=False)
    put = one._store.put

    async def fail(*_, **__):
        raise StoreError("no connection")

    one._store.put = fail
    await settle(one, ledger, first, result="paid")
    assert f"the key of effect {first.effect} remains claimed" in caplog.text
    with pytest.raises(EffectInFlight):
        await two.take(intent(other), durable=False)
    one._store.put = put
    if next_step == "close":
        assert await one.settle_all()
    else:
        await one.take(intent(ledger, key="another"), durable=False)
    assert (await two.take(intent(other), durable=False)).result == "paid"


async def test_late_outcome_changes_no_claim_that_is_settled(machines):
    one, two, ledger, other = machines
    first = intent(ledger)
    await one.take(first, durable=False)
    await settle(one, ledger, first, result="paid")
    late = Outcome(effect=first.effect, op="bank.pay", key="k", status="unknown", state="unknown")
    await one.settle(late, first.origin, is_late=True)
    assert (await two.take(intent(other), durable=False)).result == "paid"


# A host that dies after the outcome of a payment is in its ledger, and before it is in the shared store.
DYING = """
import os, signal, sys
from pathlib import Path
from types import SimpleNamespace

import anyio
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import Level, OpContext, OpFamily, op

sys.path.insert(0, sys.argv[2])
import shared_store


class Payment(BaseModel):
    pass


@op("bank.pay", level=Level.RESTRICTED)
async def pay(params: Payment, ctx: OpContext) -> str:
    return "paid"


async def main():
    bank = SimpleNamespace(sideband_ops=lambda: OpFamily(name="bank", ops=(pay,)))
    plugins = [Plugin("store", "shared", shared_store), Plugin("op", "bank", bank)]
    async with Host(home=Path(sys.argv[1]), plugins=plugins, autoload=False) as host:
        put = host.store.put

        async def dying(key, value, **options):
            if key.startswith("claim/") and "status" in value:
                os.kill(os.getpid(), signal.SIGKILL)
            return await put(key, value, **options)

        host.store.put = dying
        await host.op("bank.pay", {}, key="k")


anyio.run(main)
"""


@pytest.fixture
async def killed(tmp_path, shared_store):
    """The home of a host that was killed after it had paid with the key `k`."""
    words = [sys.executable, "-c", DYING, tmp_path / "one", str(Path(shared_store.__file__).parent)]
    done = await anyio.run_process(words, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return tmp_path / "one"


async def test_erased_outcome_of_a_killed_host_leaves_its_key_unknown(killed, family, shared_store):
    erase(killed / "ledger", b'"kind":"outcome"')
    plugins = [Plugin("store", "shared", shared_store), family("bank", pay)]
    async with Host(home=killed, plugins=plugins, autoload=False) as host:
        assert await host.broker.recall("k") == ("unknown", None)


async def test_outcome_that_a_killed_host_did_not_store_is_stored_by_the_next_one(
    tmp_path, killed, family, shared_store
):
    plugins = [Plugin("store", "shared", shared_store), family("bank", pay)]
    async with Host(home=tmp_path / "two", plugins=plugins, autoload=False) as other:
        assert await other.broker.recall("k") == ("unknown", None)
        async with Host(home=killed, plugins=plugins, autoload=False):
            assert await other.broker.recall("k") == ("done", "paid")
        assert await other.op("bank.pay", {}, key="k") == "paid"


async def test_host_takes_the_claims_of_a_shared_store(tmp_path, family, shared_store):
    plugins = [Plugin("store", "shared", shared_store), family("bank", pay)]
    effects = []
    for name in ("one", "two"):
        async with Host(home=tmp_path / name, plugins=plugins, autoload=False) as host:
            assert await host.op("bank.pay", {}, key="k", on_effect=effects.append) == "paid"
            assert await host.broker.recall("k") == ("done", "paid")
            assert (await verify(host.ledger.folder, host.store)).ok
    assert len(effects) == 1


async def test_ledgers_of_a_shared_store_have_their_own_heads(machines, tmp_path):
    one, two, ledger, other = machines
    for claims, of, key in ((one, ledger, "a"), (two, other, "b"), (one, ledger, "c")):
        await claims.take(intent(of, key=key), durable=True)
        await of._save_head()
    verdicts = [await verify(of.folder, one._store) for of in (ledger, other)]
    assert [(verdict.ok, verdict.entries) for verdict in verdicts] == [(True, 3), (True, 2)]
    path = ledger.folder / "00000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert "truncated" in (await verify(ledger.folder, one._store)).problems[0].reason


async def test_effect_with_a_key_writes_nothing_to_the_store(make_host, family, monkeypatch):
    called = []
    async with make_host(family("bank", pay)) as host:
        await host.op("bank.pay", {}, key="first")
        for name in ("get", "keys", "put", "append", "delete", "transaction"):
            monkeypatch.setattr(SqliteStore, name, lambda *_, name=name, **__: called.append(name))
        for number in range(3):
            assert [await host.op("bank.pay", {}, key=f"k{number}") for _ in range(2)] == ["paid", "paid"]
        monkeypatch.undo()
    assert called == []
