"""Limits: work that would exceed them is rejected before it starts, and long work does not block the host."""

import hashlib
import threading
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import OpContext, OpError, OpFamily, OpParamsInvalid, OpTimeout, op
from sideband_crypto import CryptoError, CryptoLegacy, CryptoTooLarge, CryptoUnavailable, CryptoValue

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("verb", "key"), [("hash", {}), ("hmac", {"key": "k"}), ("hmac_verify", {"key": "k", "mac": b""})]
)
async def test_broken_digests_need_legacy(crypto, verb, key):
    for algorithm in ("md5", "sha1"):
        with pytest.raises(CryptoLegacy, match=algorithm) as caught:
            await crypto(verb, data="x", algorithm=algorithm, **key)
        assert caught.value.code == "crypto.legacy"
        assert "`legacy`" in caught.value.hint
        await crypto(verb, data="x", algorithm=algorithm, legacy=True, **key)


OVER_LIMIT = [
    ("hash", {"data": b"0" * 1025}),
    ("hmac", {"data": b"0" * 1025, "key": "k"}),
    ("compare", {"a": b"0" * 1000, "b": b"0" * 1000}),
    ("aes_gcm_encrypt", {"data": b"0" * 1000, "associated_data": b"0" * 25, "key": b"0" * 16}),
    ("aes_gcm_decrypt", {"ciphertext": b"0" * 1025, "nonce": b"0" * 12, "key": b"0" * 16}),
    ("aes_cbc_encrypt", {"data": b"0" * 1025, "key": b"0" * 16}),
    ("aes_cbc_decrypt", {"ciphertext": b"0" * 1040, "iv": b"0" * 16, "key": b"0" * 16}),
    ("sign", {"data": b"0" * 1025, "key": b"0" * 32, "algorithm": "ed25519"}),
    ("verify", {"data": b"0" * 1025, "key": b"0" * 32, "algorithm": "ed25519", "signature": b""}),
    ("pbkdf2", {"key": "k", "salt": "s", "iterations": 1001}),
    ("pbkdf2", {"key": "k", "salt": "s", "iterations": 501, "length": 33}),
    ("scrypt", {"key": "k", "salt": "s", "n": 1024, "r": 4, "p": 4}),
    ("scrypt", {"key": "k", "salt": "s", "n": 8192, "r": 1}),
]


class TestSmallLimits:
    @pytest.fixture
    def settings(self):
        return {"max_bytes": 1024, "max_iterations": 1000, "max_memory": 1024 * 1024, "max_cost": 8192}

    async def test_request_over_a_limit_is_rejected(self, crypto):
        for verb, given in OVER_LIMIT:
            with pytest.raises(CryptoTooLarge) as caught:
                await crypto(verb, **given)
            assert caught.value.code == "crypto.too_large"
            assert "[plugins.crypto]" in caught.value.hint
            assert caught.value.nothing_happened

    async def test_request_at_a_limit_is_accepted(self, crypto):
        await crypto("hash", data=b"0" * 1024)
        await crypto("pbkdf2", key="k", salt="s", iterations=500, length=64)
        await crypto("scrypt", key="k", salt="s", n=1024, r=4)


async def test_oaep_rejects_data_over_one_block(crypto):
    key = (await crypto("generate_key", kind="rsa-2048"))["key"]
    with pytest.raises(CryptoTooLarge, match="at most 190"):
        await crypto("rsa_oaep_encrypt", key=key, data=b"0" * 191)
    sealed = await crypto("rsa_oaep_encrypt", key=key, data=b"0" * 190)
    assert await crypto("rsa_oaep_decrypt", key=key, data=sealed) == b"0" * 190


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("scrypt", {"key": "k", "salt": "s", "n": 1000}),
        ("hkdf", {"key": "k", "algorithm": "sha1", "length": 5101}),
    ],
)
async def test_unsupported_costs_and_lengths_are_rejected(crypto, verb, given):
    with pytest.raises(CryptoValue):
        await crypto(verb, **given)


INVALID = [
    ("random", {"length": 0}),
    ("random", {"length": 65_537}),
    ("pbkdf2", {"key": "k", "salt": "s", "iterations": 0}),
    ("pbkdf2", {"key": "", "salt": "s", "iterations": 1}),
    ("hmac", {"key": b"k" * 16_385, "data": ""}),
    ("hash", {"data": "\ud800"}),
    ("hash", {"data": "x", "algorithm": "shake_128"}),
    ("hmac", {"handle": "../key", "data": ""}),
    ("hmac", {"handle": "k" * 65, "data": ""}),
    ("generate_key", {"kind": "rsa-1024"}),
]


async def test_invalid_parameters_are_rejected(crypto):
    for verb, given in INVALID:
        with pytest.raises(OpParamsInvalid):
            await crypto(verb, **given)


async def test_validation_error_omits_the_key(crypto):
    with pytest.raises(OpParamsInvalid) as caught:
        await crypto("hmac", key="my-own-key", handle="My-Handle", data="x")
    assert "my-own-key" not in str(caught.value.as_dict())


async def test_disabled_digest_is_an_unavailable_error(crypto, monkeypatch):
    def refuse(*_arguments, **_options):
        raise ValueError("disabled for FIPS")

    monkeypatch.setattr("hashlib.new", refuse)
    with pytest.raises(CryptoUnavailable, match="sha256") as caught:
        await crypto("hash", data="x")
    assert caught.value.code == "crypto.unavailable"
    assert caught.value.hint
    assert isinstance(caught.value, CryptoError)


async def test_random_bytes_differ(crypto):
    assert len({await crypto("random", length=16) for _ in range(20)}) == 20


async def test_compare_returns_whether_values_are_equal(crypto):
    assert await crypto("compare", a="same", b=b"same") is True
    assert await crypto("compare", a="same", b="samE") is False
    assert await crypto("compare", a="same", b="same ") is False


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa-p256", "ecdsa-p384", "rsa-2048", "bytes-16", "bytes-32"])
async def test_generated_key_has_the_requested_kind(crypto, kind):
    made = await crypto("generate_key", kind=kind)
    if kind.startswith("bytes-"):
        assert len(made["key"]) == int(kind.removeprefix("bytes-"))
        assert made["public"] is None
        return
    algorithm = "rsa-pss" if kind == "rsa-2048" else kind.partition("-")[0]
    signature = await crypto("sign", key=made["key"], data="x", algorithm=algorithm)
    assert await crypto("verify", key=made["public"], data="x", algorithm=algorithm, signature=signature) is True


BLOCKED = {"key": "k", "salt": "blocked", "iterations": 1}


@pytest.fixture
def blocked_library(monkeypatch):
    """Block PBKDF2 in the library until the test ends if the salt is `blocked`."""
    release = threading.Event()
    derive = hashlib.pbkdf2_hmac

    def pbkdf2_hmac(algorithm, key, salt, *arguments):
        if salt == b"blocked":
            release.wait(60)
        return derive(algorithm, key, salt, *arguments)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", pbkdf2_hmac)
    yield
    release.set()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_timeout_does_not_wait_for_the_library(host, crypto, blocked_library):
    with pytest.raises(OpTimeout):
        await host.op("crypto.pbkdf2", BLOCKED, deadline=0.05)
    assert (await crypto("hash", data="abc")).hex().startswith("ba78")


class Nothing(BaseModel):
    pass


@op("greedy.go", timeout=60)
async def go(params: Nothing, ctx: OpContext) -> None:
    async def one() -> None:
        try:
            await ctx.dispatch("crypto.pbkdf2", BLOCKED)
        except OpError:
            return

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(one)


class TestGreedy:
    @pytest.fixture
    def settings(self):
        return {"threads": 2}

    @pytest.fixture
    def more_plugins(self):
        return [Plugin("op", "greedy", SimpleNamespace(sideband_ops=lambda: OpFamily(name="greedy", ops=(go,))))]

    @pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
    async def test_expensive_work_of_one_call_does_not_starve_others(self, host, crypto, blocked_library):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.op, "greedy.go", {})
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(20):
                await crypto("pbkdf2", key="k", salt="s", iterations=10)
            tasks.cancel_scope.cancel()
