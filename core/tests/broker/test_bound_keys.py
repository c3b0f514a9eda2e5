"""A key is bound to its principal, the code that used it, and the rights that its effect used."""

import json
from hashlib import sha256

import anyio
import pytest
from attrs import frozen
from pydantic import BaseModel, Field
from sideband import hookimpl
from sideband.broker import Attempt, Call, KeyReused
from sideband.broker._values import digest_of
from sideband.hooks import Deny
from sideband.ledger import Intent
from sideband.ops import (
    EffectUnknown,
    Grant,
    Level,
    OpContext,
    OpDenied,
    OpFailed,
    OpParamsInvalid,
    Origin,
    Reconciled,
    Scope,
    op,
)
from sideband.state import make_home
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio


@frozen
class VaultScope(Scope, family="vault"):
    name: str | None = None
    room: str | None = None


class Nothing(BaseModel):
    pass


class Named(BaseModel):
    name: str = "a"


class Inner(BaseModel):
    capabilities: list[str] | None = None


@pytest.fixture
def vault(family):
    """Return a plugin whose ops need rights that are known only while they run, and the list of its runs."""
    ran = []

    @op("vault.open", requires="vault", scope=lambda params: VaultScope(name=params.name), level=Level.CONTROLLED)
    async def open_vault(params: Named, ctx: OpContext) -> str:
        ran.append(params.name)
        return f"contents of {params.name}"

    @op("vault.follow", requires="vault", scope=lambda _: VaultScope(name="a"), level=Level.CONTROLLED)
    async def follow(params: Nothing, ctx: OpContext) -> str:
        ran.append("follow")
        ctx.require(VaultScope(name="b"))
        return "contents of b"

    @op("vault.outer", level=Level.CONTROLLED)
    async def outer(params: Inner, ctx: OpContext) -> str:
        ran.append("outer")
        return await ctx.dispatch("vault.middle", {}, capabilities=params.capabilities)

    @op("vault.middle", level=Level.CONTROLLED)
    async def middle(params: Nothing, ctx: OpContext) -> str:
        return await ctx.dispatch("vault.follow", {}, key="inner")

    @op("vault.fail", level=Level.CONTROLLED)
    async def fail(params: Nothing, ctx: OpContext) -> str:
        ran.append("fail")
        raise OpFailed("half way through")

    @op("vault.tell", level=Level.CONTROLLED)
    async def tell(params: Nothing, ctx: OpContext) -> str:
        return "the code is hush-hush-1"

    @op("vault.burn", requires="vault", scope=lambda _: VaultScope(name="a"), level=Level.CONTROLLED)
    async def burn(params: Nothing, ctx: OpContext) -> str:
        ctx.require(VaultScope(name="b"))
        raise OpFailed("b is on fire")

    @op("vault.read", level=Level.MONITORED)
    async def read(params: Named, ctx: OpContext) -> str:
        ran.append(f"read {params.name}")
        return f"text of {params.name}"

    ops = (open_vault, follow, outer, middle, fail, tell, burn, read)
    return family("vault", *ops, scope=VaultScope), ran


def call_of(skill="notes", code="snapshot-1", grant=("vault",), principal="user", key="k"):
    grant = Grant.parse(grant)
    attempt = Attempt.first(key, seed="s") if key else None
    return Call("c", grant, "d", Origin(principal, skill=skill), anyio.current_time() + 60, code=code, attempt=attempt)


@pytest.mark.parametrize("other", ["bob", "Alice", "alice/", "", "a%6cice", "claims/alice", "../alice", "ali\x00ce"])
async def test_principals_with_the_same_key_never_meet(make_host, vault, other):
    plugin, ran = vault
    async with make_host(plugin) as host:
        for _ in range(2):
            for principal in ("alice", other):
                await host.op("vault.open", {}, key="k", principal=principal)
    assert ran == ["a", "a"]


async def test_parts_of_a_key_cannot_be_moved_into_the_principal(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        for principal, key in (("a", "b/c/k"), ("a/b", "c/k"), ("a/b/c", "k"), ("a%2Fb", "c/k")):
            await host.op("vault.open", {}, key=key, principal=principal)
    assert len(ran) == 4


async def test_key_in_flight_or_unknown_for_one_principal_is_free_for_another(make_host, vault):
    plugin, _ = vault
    async with make_host(plugin) as host:
        with pytest.raises(OpFailed):
            await host.op("vault.fail", {}, key="k", principal="alice")
        with pytest.raises(EffectUnknown):
            await host.op("vault.fail", {}, key="k", principal="alice")
        assert await host.op("vault.open", {}, key="k", principal="bob") == "contents of a"


async def test_key_of_one_skill_or_plugin_is_rejected_for_another(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        callers = [
            lambda key: host.op("vault.open", {}, key=key),
            lambda key: host.context_for("one").dispatch("vault.open", {}, key=key),
            lambda key: host.context_for("two").dispatch("vault.open", {}, key=key),
            lambda key: host.broker.dispatch(call_of(code="one"), "vault.open", {}, key=key),
            lambda key: host.broker.dispatch(call_of(code="two"), "vault.open", {}, key=key),
        ]
        for number, first in enumerate(callers):
            key = f"k{number}"
            assert await first(key) == await first(key) == "contents of a"
            for other in callers[:number] + callers[number + 1 :]:
                with pytest.raises(KeyReused):
                    await other(key)
    assert len(ran) == len(callers)


async def test_changed_skill_neither_gets_the_result_of_its_predecessor_nor_repeats_its_effect(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        await host.broker.dispatch(call_of(), "vault.open", {})
        with pytest.raises(KeyReused):
            await host.broker.dispatch(call_of(code="snapshot-2"), "vault.open", {})
        assert await host.broker.dispatch(call_of(), "vault.open", {}) == "contents of a"
    assert ran == ["a"]


async def test_stored_result_requires_the_rights_that_became_known_while_the_effect_ran(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        await host.op("vault.follow", {}, key="k", grants=["vault:name=a", "vault:name=b"])
        for narrower in (["vault:name=a"], ["vault:name=a", "vault:name=b,room=cellar"], ["vault:name=a|bb"]):
            with pytest.raises(OpDenied) as caught:
                await host.op("vault.follow", {}, key="k", grants=narrower)
            assert "`vault:name=b` is not granted" in caught.value.message
    assert ran == ["follow"]


async def test_wider_grant_gets_the_stored_result(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        await host.op("vault.follow", {}, key="k", grants=["vault:name=a|b", "vault:room=attic"])
        for wider in (["vault:name=a|b"], ["vault:name=a|b|c"], ["vault"], None):
            assert await host.op("vault.follow", {}, key="k", grants=wider) == "contents of b"
    assert ran == ["follow"]


async def test_stored_result_requires_the_rights_that_its_child_effects_used(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        await host.op("vault.outer", {}, key="k", grants=["vault:name=a", "vault:name=b"])
        for narrower in ([], ["vault:name=a"], ["vault:name=b"]):
            with pytest.raises(OpDenied):
                await host.op("vault.outer", {}, key="k", grants=narrower)
        assert await host.op("vault.outer", {}, key="k", grants=["vault:name=a|b|c"]) == "contents of b"
    assert ran == ["outer", "follow"]


async def test_replayed_child_effect_counts_as_used_by_its_parent(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        for key in ("one", "two"):
            await host.op("vault.outer", {}, key=key, grants=["vault:name=a", "vault:name=b"])
        with pytest.raises(OpDenied):
            await host.op("vault.outer", {}, key="two", grants=["vault:name=a"])
    assert ran == ["outer", "follow", "outer"]


async def test_child_effect_with_a_narrower_grant_gets_no_result_of_a_wider_one(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        await host.op("vault.outer", {})
        with pytest.raises(OpDenied):
            await host.op("vault.outer", {"capabilities": ["vault:name=a"]})
    assert ran == ["outer", "follow", "outer"]


async def test_refused_replay_is_recorded_as_denied(make_host, vault, outcomes):
    plugin, _ = vault
    async with make_host(plugin) as host:
        await host.op("vault.follow", {}, key="k", grants=["vault"])
        with pytest.raises(OpDenied):
            await host.op("vault.follow", {}, key="k", grants=["vault:name=a"])
    assert [line["status"] for line in outcomes()] == ["done", "denied"]


async def test_result_that_recovery_found_requires_the_whole_grant(make_host, family, leave_running):
    """The host died before it recorded which rights were used."""

    async def reconcile(recorded, ctx):
        return Reconciled(happened=True, result="contents of b")

    @op("vault.take", requires="vault", level=Level.CONTROLLED, reconcile=reconcile)
    async def take(params: Nothing, ctx: OpContext) -> str:
        return "taken again"

    rights = ("vault:name=a|b", "vault:room=attic")
    digest = digest_of(Nothing())
    await leave_running(Intent(effect="", op="vault.take", key="k", rights=rights, params_digest=digest))
    async with make_host(family("vault", take, scope=VaultScope)) as host:
        with pytest.raises(OpDenied):
            await host.op("vault.take", {}, key="k", grants=["vault:name=a|b"])
        assert await host.op("vault.take", {}, key="k", grants=[*rights, "vault"]) == "contents of b"


async def test_guards_decide_about_the_present_caller_before_a_stored_result_is_returned(make_host, vault, hook):
    plugin, ran = vault
    refused = []

    @hookimpl
    def op_call(event):
        return Deny("closed") if refused else None

    async with make_host(plugin, hook("strict", op_call)) as host:
        await host.op("vault.open", {}, key="k")
        refused.append(True)
        with pytest.raises(OpDenied, match="closed"):
            await host.op("vault.open", {}, key="k")
    assert ran == ["a"]


async def test_stored_result_is_redacted_with_the_secrets_that_are_known_now(make_host, vault):
    plugin, _ = vault
    async with make_host(plugin) as host:
        await host.op("vault.tell", {}, key="k")
        host.redactor.protect("hush-hush-1", "code")
        assert await host.op("vault.tell", {}, key="k") == "the code is [redacted:code]"
        assert await host.broker.recall("k") == ("done", "the code is [redacted:code]")


async def test_keys_of_undo_steps_cannot_be_used_for_other_effects(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        for key in ("undo:e-1:0", "undo:", "undo:e-1:0 "):
            with pytest.raises(KeyReused):
                await host.op("vault.open", {}, key=key)
        with pytest.raises(KeyReused):
            await host.broker.dispatch(call_of(key="undo:e-1"), "vault.open", {})
        with pytest.raises(KeyReused):
            await host.context_for("one").dispatch("vault.open", {}, key="undo:e-1:0")
    assert ran == []


@pytest.mark.parametrize("principal", ["user", "alice"])
async def test_effect_that_is_cancelled_before_it_began_releases_its_key(make_host, vault, principal):
    plugin, ran = vault
    async with make_host(plugin) as host:
        await host.op("vault.open", {}, principal=principal)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await host.op("vault.open", {"name": "b"}, key="k", principal=principal)
        assert scope.cancelled_caught
        await host.op("vault.open", {"name": "b"}, key="k", principal=principal)
    assert ran == ["a", "b"]


@pytest.fixture
def leave_claim(tmp_path):
    """Return a function that leaves a claim of an earlier version in the store."""

    async def leave(state, path="claims/k", **fields):
        make_home(tmp_path / "home" / "store")
        async with open_sqlite(tmp_path / "home" / "store") as store:
            claim = {"effect": "e-1", "op": "vault.open", "digest": digest_of(Named()), "state": state}
            await store.put(path, {**claim, "result": "contents of a", **fields})

    return leave


@pytest.mark.parametrize("principal", ["user", "alice"])
@pytest.mark.parametrize("state", ["done", "unknown", "running", "repeatable"])
async def test_claim_of_an_earlier_version_is_neither_returned_nor_repeated(
    make_host, vault, leave_claim, principal, state
):
    plugin, ran = vault
    await leave_claim(state)
    async with make_host(plugin) as host:
        with pytest.raises(KeyReused):
            await host.op("vault.open", {}, key="k", principal=principal)
        with pytest.raises(KeyReused):
            await host.broker.dispatch(call_of(), "vault.open", {}, key="k")
        assert await host.broker.recall("k") == ("unknown", None)
    assert ran == []


@pytest.mark.parametrize("path", ["claims/k", "claims:al%2Fice/k"])
async def test_claim_of_an_earlier_version_that_has_a_holder_blocks_its_principal_only(
    make_host, vault, leave_claim, path
):
    plugin, ran = vault
    holder, other = ("user", "al/ice") if path == "claims/k" else ("al/ice", "user")
    await leave_claim("done", path, holder=[holder, None, ""], rights=[])
    async with make_host(plugin) as host:
        with pytest.raises(KeyReused):
            await host.op("vault.open", {}, key="k", principal=holder)
        assert await host.op("vault.open", {}, key="k", principal=other) == "contents of a"
    assert ran == ["a"]


async def test_failed_claim_of_an_earlier_version_is_free(make_host, vault, leave_claim):
    plugin, ran = vault
    await leave_claim("failed")
    async with make_host(plugin) as host:
        assert await host.broker.recall("k") is None
        for principal in ("alice", "user"):
            await host.op("vault.open", {}, key="k", principal=principal)
            assert await host.op("vault.open", {}, key="k", principal=principal) == "contents of a"
    assert ran == ["a", "a"]


async def test_key_in_a_line_of_version_1_is_not_repeated_even_if_its_claim_is_lost(make_host, vault, tmp_path):
    plugin, ran = vault
    fields = {"effect": "0199-1", "key": "k", "kind": "intent", "op": "vault.open", "origin": {"principal": "user"}}
    body = json.dumps({**fields, "prev": "0" * 64, "seq": 1, "time": "2026-01-01", "v": 1}, separators=(",", ":"))
    folder = tmp_path / "home" / "ledger"
    make_home(tmp_path / "home")
    folder.mkdir()
    digest = sha256(f"{'0' * 64}{body}".encode()).hexdigest()
    (folder / "00000001.jsonl").write_text(f'{{"hash":"{digest}",{body[1:]}\n')
    async with make_host(plugin) as host:
        with pytest.raises(KeyReused):
            await host.op("vault.open", {}, key="k")
        assert await host.broker.recall("k") == ("unknown", None)
        assert await host.op("vault.open", {}, key="k", principal="alice") == "contents of a"
    assert ran == ["a"]


@pytest.mark.parametrize("case", [("k\ud800", "user"), ("k", "user\ud800")])
async def test_key_that_is_not_valid_unicode_is_refused(make_host, vault, case):
    plugin, ran = vault
    key, principal = case
    async with make_host(plugin) as host:
        with pytest.raises(OpParamsInvalid):
            await host.op("vault.open", {}, key=key, principal=principal)
    assert ran == []


async def test_key_of_an_effect_with_a_secret_parameter_is_not_used_twice(make_host, family):
    class Keep(BaseModel):
        value: str = Field(repr=False)

    kept = []

    @op("safe.keep", level=Level.CONTROLLED)
    async def keep(params: Keep, ctx: OpContext) -> int:
        kept.append(params.value)
        return len(kept)

    async with make_host(family("safe", keep)) as host:
        await host.op("safe.keep", {"value": "first"}, key="k")
        for value in ("first", "second"):
            with pytest.raises(KeyReused):
                await host.op("safe.keep", {"value": value}, key="k")
    assert kept == ["first"]


async def test_key_that_contains_a_secret_is_refused_and_not_recorded(make_host, family, ledger_lines):
    @op("safe.learn", level=Level.SAFE)
    async def learn(params: Nothing, ctx: OpContext) -> None:
        ctx.protect("s3cr3t-value", "demo")

    @op("safe.work", level=Level.CONTROLLED)
    async def work(params: Nothing, ctx: OpContext) -> None:
        pass

    async with make_host(family("safe", learn, work)) as host:
        await host.op("safe.learn", {})
        with pytest.raises(OpParamsInvalid, match="contains the secret `demo`"):
            await host.op("safe.work", {}, key="order-s3cr3t-value")
        await host.op("safe.work", {}, key="order")
    assert "s3cr3t" not in str(ledger_lines())


async def test_recorded_answer_of_an_interrupted_call_requires_the_rights_that_the_effect_used(make_host, vault):
    plugin, ran = vault
    wide = ("vault:name=a", "vault:name=b")
    async with make_host(plugin) as host:
        await host.broker.dispatch(call_of(grant=wide), "vault.follow", {})
        for grant in (wide[:1], wide):
            again = call_of(grant=grant)
            again.attempt = await host.broker.attempts.again("k", principal="user", started="", seed="s", stops=True)
            if grant == wide:
                assert await host.broker.dispatch(again, "vault.follow", {}) == "contents of b"
                assert len(again.attempt.answered) == 1
            else:
                with pytest.raises(OpDenied):
                    await host.broker.dispatch(again, "vault.follow", {})
    assert ran == ["follow"]


async def test_recorded_failure_is_an_answer_only_for_the_code_that_got_it(make_host, vault):
    plugin, ran = vault
    async with make_host(plugin) as host:
        with pytest.raises(OpFailed, match="half way through"):
            await host.broker.dispatch(call_of(), "vault.fail", {})
        for code, expected in (("snapshot-1", OpFailed), ("snapshot-2", KeyReused)):
            again = call_of(code=code)
            again.attempt = await host.broker.attempts.again("k", principal="user", started="", seed="s", stops=False)
            with pytest.raises(expected):
                await host.broker.dispatch(again, "vault.fail", {})
    assert ran == ["fail"]


async def test_recorded_failure_requires_the_rights_that_the_effect_used(make_host, vault):
    plugin, _ = vault
    wide = ("vault:name=a", "vault:name=b")
    async with make_host(plugin) as host:
        with pytest.raises(OpFailed, match="b is on fire"):
            await host.broker.dispatch(call_of(grant=wide), "vault.burn", {})
        for grant, expected in ((wide[:1], OpDenied), (wide, OpFailed)):
            again = call_of(grant=grant)
            again.attempt = await host.broker.attempts.again("k", principal="user", started="", seed="s", stops=False)
            with pytest.raises(expected):
                await host.broker.dispatch(again, "vault.burn", {})


@pytest.mark.parametrize("op_used", ["vault.tell", "vault.read"])
async def test_skill_cannot_answer_the_read_of_another_one_by_taking_its_key(make_host, vault, op_used):
    plugin, ran = vault
    key = Attempt.first("k", seed="s").effect_key("e", "vault.read", digest_of(Named(name="a")), domain="d")
    async with make_host(plugin) as host:
        thief = call_of(code="thief", key=None)
        params = {} if op_used == "vault.tell" else {"name": "forged"}
        await host.broker.dispatch(thief, op_used, params, key=key)
        victim = call_of()
        victim.attempt = await host.broker.attempts.again("k", principal="user", started="", seed="s", stops=False)
        assert await host.broker.dispatch(victim, "vault.read", {"name": "a"}) == "text of a"
    assert ran[-1] == "read a"
