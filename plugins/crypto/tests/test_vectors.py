"""The ops match the test vectors of the documents that define the algorithms."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

pytestmark = pytest.mark.anyio

KNOWN = json.loads(Path(__file__).with_name("vectors.json").read_text())


def cases(name):
    return pytest.mark.parametrize("case", KNOWN[name]["cases"])


@pytest.mark.parametrize(("algorithm", "digest"), KNOWN["digests"]["cases"].items(), ids=KNOWN["digests"]["cases"])
async def test_digests_match(crypto, algorithm, digest):
    assert (await crypto("hash", data="abc", algorithm=algorithm, legacy=True)).hex() == digest


@cases("hmac")
async def test_hmac_matches(crypto, case):
    key, data, algorithm, code = case
    given = {"key": bytes.fromhex(key), "data": data, "algorithm": algorithm}
    assert (await crypto("hmac", **given)).hex() == code
    assert await crypto("hmac_verify", mac=bytes.fromhex(code), **given) is True
    assert await crypto("hmac_verify", mac=bytes.fromhex(code)[:-1], **given) is False


@cases("hkdf")
async def test_hkdf_matches(crypto, case):
    key, salt, info = map(bytes.fromhex, case[:3])
    length, derived = case[3:]
    assert (await crypto("hkdf", key=key, salt=salt, info=info, length=length)).hex() == derived


@cases("pbkdf2")
async def test_pbkdf2_matches(crypto, case):
    algorithm, password, salt, iterations, derived = case
    given = {"key": password, "salt": salt, "iterations": iterations, "algorithm": algorithm}
    assert (await crypto("pbkdf2", length=len(derived) // 2, **given)).hex() == derived


@cases("scrypt")
async def test_scrypt_matches(crypto, case):
    password, salt, n, r, p, derived = case
    assert (await crypto("scrypt", key=password, salt=salt, n=n, r=r, p=p, length=64)).hex() == derived


@cases("ed25519")
async def test_ed25519_matches(crypto, case):
    private, public, data, signature = map(bytes.fromhex, case)
    assert await crypto("sign", key=private, data=data, algorithm="ed25519") == signature
    assert await crypto("verify", key=public, data=data, algorithm="ed25519", signature=signature) is True


@cases("ecdsa")
async def test_ecdsa_matches(crypto, case):
    x, y, signature = case
    key = ec.EllipticCurvePublicNumbers(int(x, 16), int(y, 16), ec.SECP256R1()).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    known = {"key": der, "algorithm": "ecdsa", "signature": bytes.fromhex(signature), "form": "raw"}
    assert await crypto("verify", data="sample", **known) is True
    assert await crypto("verify", data="example", **known) is False


@cases("aes_gcm")
async def test_aes_gcm_matches(crypto, case):
    key, nonce, text, associated, sealed = map(bytes.fromhex, case)
    given = {"key": key, "nonce": nonce, "associated_data": associated}
    assert (await crypto("aes_gcm_encrypt", data=text, **given))["ciphertext"] == sealed
    assert await crypto("aes_gcm_decrypt", ciphertext=sealed, **given) == text


@cases("aes_cbc")
async def test_aes_cbc_matches(crypto, case):
    key, iv, text, prefix = map(bytes.fromhex, case)
    found = await crypto("aes_cbc_encrypt", data=text, key=key, iv=iv)
    assert found["ciphertext"].startswith(prefix)
    assert len(found["ciphertext"]) == len(text) + 16
    assert await crypto("aes_cbc_decrypt", ciphertext=found["ciphertext"], key=key, iv=iv) == text
