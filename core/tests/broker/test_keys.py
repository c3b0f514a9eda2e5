"""An effect with an idempotency key happens at most once."""

import sys

import anyio
import pytest
from pydantic import BaseModel
from sideband.broker import KeyReused
from sideband.ops import EffectInFlight, EffectUnknown, Level, OpContext, OpDenied, OpFailed, OpTimeout, op

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Amount(BaseModel):
    amount: int = 1


class Refused(OpFailed):
    nothing_happened = True


@pytest.fixture
def bank(family):
    """Return a plugin with an op that fails, hangs or succeeds depending on the amount, and the list of its runs."""
    ran = []

    @op("bank.pay", level=Level.RESTRICTED, timeout=0.2)
    async def pay(params: Amount, ctx: OpContext) -> dict[str, int]:
        ran.append(params.amount)
        if params.amount < -1:
            raise ValueError("half way through")
        if params.amount < 0:
            raise Refused("insufficient funds")
        if params.amount > 100:
            await anyio.sleep_forever()
        return {"paid": params.amount, "payments": len(ran)}

    plugin = family("bank", pay)
    return plugin, ran


async def test_second_dispatch_with_the_same_key_gets_the_stored_result(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        first = await host.op("bank.pay", {"amount": 5}, key="k")
        assert await host.op("bank.pay", {"amount": 5}, key="k") == first
    assert ran == [5]


async def test_stored_result_is_available_to_the_next_host(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        first = await host.op("bank.pay", {"amount": 5}, key="k")
    async with make_host(plugin) as host:
        assert await host.op("bank.pay", {"amount": 5}, key="k") == first
    assert ran == [5]


async def test_stored_result_preserves_bytes(make_host, family):
    @op("bytes.make")
    async def make(params: Amount, ctx: OpContext) -> dict[str, bytes]:
        return {"raw": b"\x00\xff"}

    async with make_host(family("bytes", make)) as host:
        for _ in range(2):
            assert await host.op("bytes.make", {}, key="k") == {"raw": b"\x00\xff"}


async def test_key_is_rejected_for_other_parameters(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        await host.op("bank.pay", {"amount": 5}, key="k")
        with pytest.raises(KeyReused):
            await host.op("bank.pay", {"amount": 6}, key="k")
    assert ran == [5]


async def test_stored_result_requires_the_grant(make_host, family):
    @op("bank.read", requires="bank", level=Level.CONTROLLED)
    async def read(params: Amount, ctx: OpContext) -> str:
        return "answer"

    async with make_host(family("bank", read)) as host:
        await host.op("bank.read", {}, key="k")
        with pytest.raises(OpDenied):
            await host.op("bank.read", {}, key="k", grants=[])


async def test_failed_effect_is_unknown_and_not_repeated(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        with pytest.raises(OpFailed):
            await host.op("bank.pay", {"amount": -2}, key="k")
        with pytest.raises(EffectUnknown):
            await host.op("bank.pay", {"amount": -2}, key="k")
    assert ran == [-2]


async def test_effect_that_did_not_happen_can_be_retried_with_its_key(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        for _ in range(2):
            with pytest.raises(OpFailed):
                await host.op("bank.pay", {"amount": -1}, key="k")
    assert ran == [-1, -1]


@both_backends
async def test_effect_that_timed_out_is_unknown_and_not_repeated(make_host, bank):
    plugin, ran = bank
    async with make_host(plugin) as host:
        with pytest.raises(OpTimeout):
            await host.op("bank.pay", {"amount": 101}, key="k")
        with pytest.raises(EffectUnknown):
            await host.op("bank.pay", {"amount": 101}, key="k")
    assert ran == [101]


@both_backends
async def test_concurrent_dispatch_with_the_same_key_is_rejected_as_in_flight(make_host, bank):
    plugin, ran = bank
    ended = []

    async def pay(host):
        try:
            await host.op("bank.pay", {"amount": 101}, key="k")
        except (EffectInFlight, OpTimeout) as error:
            ended.append(error.code)

    async with make_host(plugin) as host, anyio.create_task_group() as tasks:
        tasks.start_soon(pay, host)
        tasks.start_soon(pay, host)
    assert sorted(ended) == ["effect.in_flight", "op.timeout"]
    assert ran == [101]


async def test_effect_with_a_key_needs_a_cancel_scope_only_for_its_handler(make_host, bank):
    plugin, _ = bank
    scopes = []

    def profile(frame, event, _argument):
        if event == "call" and frame.f_code.co_name == "create_cancel_scope":
            scopes.append(frame.f_back.f_back.f_code.co_name)

    async with make_host(plugin) as host:
        await host.op("bank.pay", {}, key="before")
        sys.setprofile(profile)
        try:
            await host.op("bank.pay", {}, key="k")
        finally:
            sys.setprofile(None)
    assert "run_handler" in scopes
    assert "_outcome" not in scopes, "the ledger has the outcome at once, and settling a claim there takes no time"
