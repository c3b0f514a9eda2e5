"""Skills sign, verify and encrypt with keys that they cannot read."""

import base64
import hashlib
import hmac

import pytest
from sideband.ops import OpDenied, OpFailed, OpParamsInvalid
from sideband_crypto import CryptoKey, CryptoValue
from sideband_crypto._ops import OPS
from sideband_crypto._scope import CryptoScope

pytestmark = pytest.mark.anyio

SECRET = "a-key-that-is-never-revealed"
MAC = hmac.digest(SECRET.encode(), b"body", "sha256")


async def test_stored_key_gives_the_same_hmac_as_the_key_itself(crypto, store):
    await store("webhook", SECRET, "hmac")
    assert await crypto("hmac", data="body", handle="webhook") == MAC


async def test_use_grant_is_sufficient(crypto, store):
    await store("webhook", SECRET, "hmac")
    grants = ["crypto:op=hmac,key=webhook", "secrets:name=webhook"]
    assert await crypto("hmac", data="body", handle="webhook", grants=grants) == MAC


@pytest.mark.parametrize(
    "grants",
    [
        ["crypto:op=hmac,key=webhook"],
        ["crypto", "secrets:name=other"],
        ["crypto", "secrets:name=webhook,mode=reveal"],
        ["crypto:key=other", "secrets:name=webhook"],
        ["crypto:op=hash", "secrets:name=webhook"],
        ["crypto:key=-", "secrets:name=webhook"],
        ["secrets:name=webhook"],
    ],
)
async def test_grants_for_op_and_secret_are_both_required(crypto, store, grants):
    await store("webhook", SECRET, "hmac")
    with pytest.raises(OpDenied):
        await crypto("hmac", data="body", handle="webhook", grants=grants)


async def test_grant_for_a_stored_key_does_not_allow_another_key(crypto):
    with pytest.raises(OpDenied):
        await crypto("hmac", data="body", key="mine", grants=["crypto:key=webhook"])


async def test_secret_bound_to_an_origin_is_rejected_as_key(crypto, host):
    await host.op("secrets.set", {"name": "token", "value": SECRET, "origins": ["https://api.example.org"]})
    with pytest.raises(OpFailed) as caught:
        await crypto("hmac", data="body", handle="token")
    assert caught.value.code == "secrets.audience"
    assert "op://crypto.hmac" in caught.value.hint


async def test_key_bound_to_hmac_verify_cannot_compute_an_hmac(crypto, store):
    await store("webhook", SECRET, "hmac_verify")
    assert await crypto("hmac_verify", data="body", mac=MAC, handle="webhook") is True
    with pytest.raises(OpFailed) as caught:
        await crypto("hmac", data="body", handle="webhook")
    assert caught.value.code == "secrets.audience"


@pytest.mark.parametrize(("prefix", "encode"), [("base64", base64.b64encode), ("hex", bytes.hex)])
async def test_stored_bytes_are_decoded_by_prefix(crypto, store, prefix, encode):
    raw = bytes(range(32))
    encoded = encode(raw)
    text = encoded if isinstance(encoded, str) else encoded.decode()
    await store("aes", f"{prefix}:{text}", "aes_gcm_encrypt")
    sealed = await crypto("aes_gcm_encrypt", data="hello", handle="aes")
    assert await crypto("aes_gcm_decrypt", key=raw, **sealed) == b"hello"


@pytest.mark.parametrize("value", ["base64:no!", "hex:xyz", "base64:AAA"])
async def test_error_for_a_badly_encoded_key_omits_its_value(crypto, store, value):
    await store("aes", value, "hmac")
    with pytest.raises(CryptoKey, match="`aes`") as caught:
        await crypto("hmac", data="x", handle="aes")
    assert value.partition(":")[2] not in str(caught.value.as_dict())
    assert caught.value.code == "crypto.key"
    assert caught.value.hint


async def test_decoded_key_is_redacted_in_results(crypto, store):
    raw = bytes(range(32))
    await store("aes", f"hex:{raw.hex()}", "hmac")
    await crypto("hmac", data="x", handle="aes")
    sealed = await crypto("aes_gcm_encrypt", data=b"<" + raw + b">", key=b"0" * 32)
    assert await crypto("aes_gcm_decrypt", key=b"0" * 32, **sealed) == b"<[redacted:aes]>"


@pytest.mark.parametrize(
    ("verb", "nonce"), [("aes_gcm_encrypt", {"nonce": b"0" * 12}), ("aes_cbc_encrypt", {"iv": b"0" * 16})]
)
async def test_nonce_with_a_stored_key_is_rejected(crypto, store, verb, nonce):
    await store("aes", "hex:" + "00" * 32, verb)
    with pytest.raises(CryptoValue, match="stored key"):
        await crypto(verb, data="x", handle="aes", **nonce)


@pytest.mark.parametrize("both", [{}, {"key": "k", "handle": "webhook"}])
async def test_exactly_one_of_key_and_handle_is_required(crypto, both):
    with pytest.raises(OpParamsInvalid, match="either `key`"):
        await crypto("hmac", data="x", **both)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa-p256", "ecdsa-p384"])
async def test_created_key_signs_without_being_revealed(crypto, host, kind):
    made = await crypto("create_key", kind=kind, handle="release", ops=["sign"])
    assert set(made) == {"handle", "public"}
    algorithm = kind.partition("-")[0]
    signature = await crypto("sign", data="1.0", algorithm=algorithm, handle="release")
    assert await crypto("verify", data="1.0", algorithm=algorithm, key=made["public"], signature=signature) is True


async def test_created_symmetric_key_encrypts(crypto):
    made = await crypto("create_key", kind="bytes-32", handle="backup", ops=["aes_gcm_encrypt", "aes_gcm_decrypt"])
    assert made == {"handle": "backup", "public": None}
    sealed = await crypto("aes_gcm_encrypt", data="hello", handle="backup")
    assert await crypto("aes_gcm_decrypt", handle="backup", **sealed) == b"hello"


async def test_create_key_needs_a_write_grant_for_the_secret(crypto):
    params = {"kind": "ed25519", "handle": "release", "ops": ["sign"]}
    with pytest.raises(OpDenied, match="secrets"):
        await crypto("create_key", **params, grants=["crypto", "secrets:name=release"])
    await crypto("create_key", **params, grants=["crypto", "secrets:name=release,mode=write"])


async def test_create_key_rejects_ops_that_do_not_support_its_kind(crypto):
    with pytest.raises(CryptoValue, match="aes_gcm_encrypt"):
        await crypto("create_key", kind="ed25519", handle="release", ops=["aes_gcm_encrypt"])


async def test_keys_and_data_are_not_recorded(crypto, store, host, tmp_path):
    await store("webhook", SECRET, "hmac")
    await crypto("hmac", data="the-signed-data", handle="webhook")
    await crypto("hmac", data="the-signed-data", key="my-own-key-in-the-call")
    made = await crypto("generate_key", kind="ed25519")
    recorded = "".join(path.read_text() for path in host.ledger.folder.glob("*.jsonl"))
    assert '"handle":"webhook"' in recorded
    for secret in (SECRET, "the-signed-data", "my-own-key-in-the-call", made["key"].decode().splitlines()[1]):
        assert secret not in recorded
        assert hashlib.sha256(secret.encode()).hexdigest() not in recorded


def test_each_op_is_a_valid_value_of_a_capability():
    assert set(CryptoScope.valid_values["op"]) == {spec.verb for spec in OPS}
