"""Claims on idempotency keys of two hosts with a shared store."""

from types import SimpleNamespace

import pytest
from sideband import StoreConflict
from sideband.broker import Claims, KeyReused
from sideband.ops import EffectInFlight, EffectUnknown

pytestmark = pytest.mark.anyio

PAY = {"op": "bank.pay", "digest": "d"}


class Memory:
    """A store in memory that can simulate a lost race."""

    def __init__(self):
        self.documents = {}
        self.before_replacing = lambda: None

    async def get(self, key):
        return self.documents.get(key)

    async def put(self, key, value, *, version=None):
        if version:
            self.before_replacing()
        found = self.documents[key].version if key in self.documents else 0
        if version is not None and version != found:
            raise StoreConflict(key, expected=version, found=found)
        self.documents[key] = SimpleNamespace(value=value, version=found + 1)
        return found + 1


@pytest.fixture
def store():
    return Memory()


class Ledger:
    """A ledger whose hosts are all alive."""

    async def register(self):
        pass

    def is_alive(self, effect):
        return True


@pytest.fixture
def claims(store):
    return Claims(store, Ledger())


async def test_key_is_claimed_once(claims):
    assert await claims.take("k", effect="e-1", **PAY) is None
    with pytest.raises(EffectInFlight):
        await claims.take("k", effect="e-2", **PAY)


async def test_key_is_rejected_for_another_op_with_the_same_parameters(claims):
    await claims.take("k", effect="e-1", **PAY)
    await claims.settle("k", "done", 1)
    with pytest.raises(KeyReused):
        await claims.take("k", effect="e-2", op="bank.refund", digest="d")


async def test_unknown_effect_remains_unknown(claims):
    await claims.take("k", effect="e-1", **PAY)
    await claims.settle("k", "unknown")
    with pytest.raises(EffectUnknown, match="e-1"):
        await claims.take("k", effect="e-2", **PAY)


async def test_concurrent_retries_of_a_failed_effect_run_once(claims, store):
    await claims.take("k", effect="e-1", **PAY)
    await claims.settle("k", "failed")

    def another_host_is_faster():
        found = store.documents["claims/k"]
        store.documents["claims/k"] = SimpleNamespace(value={**found.value, "state": "running"}, version=3)

    store.before_replacing = another_host_is_faster
    with pytest.raises(EffectInFlight):
        await claims.take("k", effect="e-2", **PAY)


async def test_claim_that_disappears_during_a_conflict_is_in_flight(claims, store):
    await claims.take("k", effect="e-1", **PAY)

    async def get(key):
        return None

    store.get = get
    with pytest.raises(EffectInFlight):
        await claims.take("k", effect="e-2", **PAY)
