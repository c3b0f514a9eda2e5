"""Forged, truncated, weak and malformed inputs are rejected, and errors do not help an attacker."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.ops import OpParamsInvalid
from sideband_crypto import CryptoDecryption, CryptoKey, CryptoValue
from sideband_crypto._key_reading import private_key, public_key

pytestmark = pytest.mark.anyio

SMALL_ORDER = json.loads(Path(__file__).with_name("vectors.json").read_text())["small_order"]["cases"]
KEY = bytes(range(32))


def pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def public_pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(65537, 2048)


async def test_gcm_detects_any_modified_byte(crypto):
    sealed = await crypto("aes_gcm_encrypt", key=KEY, data="hello", associated_data="from me")
    for index in range(len(sealed["ciphertext"])):
        changed = bytearray(sealed["ciphertext"])
        changed[index] ^= 1
        with pytest.raises(CryptoDecryption):
            await crypto(
                "aes_gcm_decrypt",
                key=KEY,
                nonce=sealed["nonce"],
                ciphertext=bytes(changed),
                associated_data="from me",
            )


@pytest.mark.parametrize(
    "change",
    [
        {"associated_data": "from you"},
        {"associated_data": ""},
        {"key": bytes(32)},
        {"key": bytes(16)},
        {"nonce": bytes(12)},
        {"nonce": bytes(16)},
    ],
)
async def test_gcm_rejects_other_parameters(crypto, change):
    sealed = await crypto("aes_gcm_encrypt", key=KEY, data="hello", associated_data="from me")
    with pytest.raises(CryptoDecryption):
        await crypto("aes_gcm_decrypt", **{"key": KEY, "associated_data": "from me", **sealed, **change})


@pytest.mark.parametrize("length", [0, 1, 4, 12, 15])
async def test_gcm_rejects_a_truncated_tag(crypto, length):
    sealed = await crypto("aes_gcm_encrypt", key=KEY, data="")
    with pytest.raises(CryptoDecryption):
        await crypto("aes_gcm_decrypt", key=KEY, nonce=sealed["nonce"], ciphertext=sealed["ciphertext"][:length])


async def test_all_failed_decryptions_raise_equal_errors(crypto, rsa_key):
    seen = set()
    for ciphertext in (b"", b"0" * 15, b"0" * 16, b"0" * 32, b"0" * 33):
        with pytest.raises(CryptoDecryption) as caught:
            await crypto("aes_cbc_decrypt", key=KEY, iv=bytes(16), ciphertext=ciphertext)
        seen.add(str(caught.value.as_dict() | {"op": ""}))
        with pytest.raises(CryptoDecryption) as caught:
            await crypto("aes_gcm_decrypt", key=KEY, nonce=bytes(12), ciphertext=ciphertext)
        seen.add(str(caught.value.as_dict() | {"op": ""}))
    for data in (b"", b"0" * 255, b"0" * 256, b"\xff" * 256, b"0" * 257):
        with pytest.raises(CryptoDecryption) as caught:
            await crypto("rsa_oaep_decrypt", key=pem(rsa_key), data=data)
        seen.add(str(caught.value.as_dict() | {"op": ""}))
    assert len(seen) == 1
    assert caught.value.code == "crypto.decryption"
    assert caught.value.hint
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("verb", "given", "wrong"),
    [
        ("aes_gcm_encrypt", {"data": ""}, {"nonce": b"0" * 11}),
        ("aes_gcm_encrypt", {"data": ""}, {"nonce": b"0" * 17}),
        ("aes_gcm_encrypt", {"data": ""}, {"nonce": b""}),
        ("aes_gcm_decrypt", {"ciphertext": b"0" * 16}, {"nonce": b"0" * 8}),
        ("aes_cbc_encrypt", {"data": ""}, {"iv": b"0" * 15}),
        ("aes_cbc_encrypt", {"data": ""}, {"iv": b""}),
        ("aes_cbc_decrypt", {"ciphertext": b"0" * 16}, {"iv": b"0" * 17}),
    ],
)
async def test_nonce_of_wrong_length_is_rejected(crypto, verb, given, wrong):
    with pytest.raises(CryptoValue, match="must have") as caught:
        await crypto(verb, key=KEY, **given, **wrong)
    assert caught.value.code == "crypto.value"
    assert caught.value.hint


async def test_each_encryption_generates_a_new_nonce(crypto):
    sealed = [await crypto("aes_gcm_encrypt", key=KEY, data="x") for _ in range(3)]
    chained = [await crypto("aes_cbc_encrypt", key=KEY, data="x") for _ in range(3)]
    assert len({one["nonce"] for one in sealed}) == len({one["iv"] for one in chained}) == 3
    assert bytes(16) not in {one["iv"] for one in chained}


@pytest.mark.parametrize("verb", ["aes_gcm_encrypt", "aes_cbc_encrypt"])
async def test_aes_key_of_wrong_length_is_rejected(crypto, verb):
    for length in (1, 15, 17, 31, 33, 64):
        with pytest.raises(CryptoKey, match=f"{length} bytes"):
            await crypto(verb, key=b"k" * length, data="x")


@pytest.mark.parametrize("text", ["00112233445566778899aabb", "AAAAAAAAAAAAAAAA"])
async def test_text_is_rejected_as_nonce(crypto, text):
    with pytest.raises(OpParamsInvalid, match="nonce"):
        await crypto("aes_gcm_encrypt", key=KEY, data="x", nonce=text)


@pytest.mark.parametrize("scheme", ["rsa-pss", "rsa-pkcs1v15"])
async def test_rsa_signature_is_bound_to_data_scheme_and_digest(crypto, rsa_key, scheme):
    signature = await crypto("sign", key=pem(rsa_key), data="1.0", algorithm=scheme)
    common = {"key": public_pem(rsa_key), "signature": signature}
    assert await crypto("verify", data="1.0", algorithm=scheme, **common) is True
    assert await crypto("verify", data="1.1", algorithm=scheme, **common) is False
    assert await crypto("verify", data="1.0", algorithm=scheme, digest="sha512", **common) is False
    other = {"rsa-pss": "rsa-pkcs1v15", "rsa-pkcs1v15": "rsa-pss"}[scheme]
    assert await crypto("verify", data="1.0", algorithm=other, **common) is False


async def test_rsa_signature_is_verified_by_the_library(crypto, rsa_key):
    signature = await crypto("sign", key=pem(rsa_key), data="1.0", algorithm="rsa-pkcs1v15")
    rsa_key.public_key().verify(signature, b"1.0", padding.PKCS1v15(), SHA256())


@pytest.mark.parametrize("algorithm", ["ed25519", "ecdsa", "rsa-pss", "rsa-pkcs1v15"])
async def test_malformed_signature_is_invalid(crypto, rsa_key, algorithm):
    made = {"ed25519": ed25519.Ed25519PrivateKey.generate, "ecdsa": lambda: ec.generate_private_key(ec.SECP384R1())}
    key = made[algorithm]() if algorithm in made else rsa_key
    common = {"key": public_pem(key), "data": "x", "algorithm": algorithm}
    malformed = [b"", b"\0", b"0" * 63, b"0" * 64, b"0" * 255, b"0" * 256, b"\xff" * 256, b"0" * 512]
    assert [one for one in malformed if await crypto("verify", signature=one, **common)] == []


async def test_ecdsa_signature_with_numbers_out_of_range_is_invalid(crypto):
    key = ec.generate_private_key(ec.SECP256R1())
    common = {"key": public_pem(key), "data": "x", "algorithm": "ecdsa", "form": "raw"}
    for numbers in ((0, 0), (0, 1), (1, 0), (1, 1), (2**256 - 1, 2**256 - 1)):
        raw = b"".join(number.to_bytes(32, "big") for number in numbers)
        assert await crypto("verify", signature=raw, **common) is False, numbers


async def test_raw_signature_of_another_length_is_invalid(crypto):
    key = ec.generate_private_key(ec.SECP256R1())
    signature = await crypto("sign", key=pem(key), data="x", algorithm="ecdsa", form="raw")
    longer = b"\0" + signature[:32] + b"\0" + signature[32:]
    common = {"key": public_pem(key), "data": "x", "algorithm": "ecdsa", "form": "raw"}
    assert await crypto("verify", signature=signature, **common) is True
    assert await crypto("verify", signature=longer, **common) is False


async def test_ed25519_key_of_small_order_is_rejected(crypto):
    signature = bytes([1]) + bytes(63)
    for raw in SMALL_ORDER:
        with pytest.raises(CryptoKey, match="any data"):
            await crypto("verify", key=bytes.fromhex(raw), data="x", algorithm="ed25519", signature=signature)


async def test_ed25519_key_of_small_order_is_rejected_as_der(crypto):
    wrapped = bytes.fromhex("302a300506032b6570032100") + bytes.fromhex(SMALL_ORDER[0])
    with pytest.raises(CryptoKey, match="any data"):
        await crypto("verify", key=wrapped, data="x", algorithm="ed25519", signature=bytes([1]) + bytes(63))


async def test_forged_signature_for_a_small_exponent_is_invalid(crypto):
    key = rsa.generate_private_key(3, 2048)
    prefix = bytes.fromhex("3031300d060960864801650304020105000420")
    digest = await crypto("hash", data="x")
    wanted = int.from_bytes(b"\x00\x01" + b"\xff" * 8 + b"\x00" + prefix + digest + b"\x00" * 194, "big")
    root = 1 << (wanted.bit_length() // 3 + 1)
    while root**3 > wanted:  # Newton's method, from above
        root = (2 * root + wanted // root**2) // 3
    forged = (root + 1).to_bytes(256, "big")
    common = {"key": public_pem(key), "data": "x", "algorithm": "rsa-pkcs1v15"}
    assert await crypto("verify", signature=forged, **common) is False


async def test_short_rsa_key_is_rejected(crypto):
    short = rsa.RSAPublicNumbers(65537, (1 << 1023) + 1155).public_key()
    with pytest.raises(CryptoKey, match="1024 bits"):
        await crypto(
            "verify",
            key=short.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            data="x",
            algorithm="rsa-pss",
            signature=b"",
        )


async def test_long_rsa_key_is_rejected(crypto):
    long = rsa.RSAPublicNumbers(65537, (1 << 8192) + 1155).public_key()
    with pytest.raises(CryptoKey, match="8193 bits"):
        await crypto(
            "rsa_oaep_encrypt", key=long.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), data="x"
        )


async def test_rsa_key_with_a_large_exponent_is_rejected(crypto):
    slow = rsa.RSAPublicNumbers((1 << 2000) + 1, (1 << 2047) + 1155).public_key()
    with pytest.raises(CryptoKey, match="exponent"):
        await crypto(
            "rsa_oaep_encrypt", key=slow.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), data="x"
        )


@pytest.mark.parametrize("part", ["d", "dmp1", "dmq1", "iqmp"])
async def test_inconsistent_rsa_key_is_rejected(crypto, rsa_key, part):
    numbers = rsa_key.private_numbers()
    parts = {name: getattr(numbers, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp", "public_numbers")}
    parts[part] ^= 2
    broken = rsa.RSAPrivateNumbers(**parts).private_key(unsafe_skip_rsa_key_validation=True)
    with pytest.raises(CryptoKey, match="inconsistent"):
        await crypto("sign", key=pem(broken), data="x", algorithm="rsa-pkcs1v15")


async def test_verify_with_an_unreadable_key_is_an_error(crypto):
    with pytest.raises(CryptoKey, match="not a readable key") as caught:
        await crypto("verify", key="nonsense", data="x", signature=b"x", algorithm="ecdsa")
    assert "public" in caught.value.hint


@pytest.mark.parametrize("curve", [ec.SECP224R1, ec.SECP256K1, ec.SECP521R1])
async def test_unsupported_curve_is_rejected(crypto, curve):
    with pytest.raises(CryptoKey, match="curve"):
        await crypto("sign", key=pem(ec.generate_private_key(curve())), data="x", algorithm="ecdsa")


async def test_point_that_is_not_on_the_curve_is_rejected(crypto):
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    raw = bytearray(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    raw[-1] ^= 1
    with pytest.raises(CryptoKey, match="readable"):
        await crypto("verify", key=bytes(raw), data="x", algorithm="ecdsa", signature=b"")


@pytest.mark.parametrize("algorithm", ["ed25519", "ecdsa", "rsa-pss"])
async def test_key_of_another_kind_is_rejected(crypto, rsa_key, algorithm):
    keys = {
        "ed25519": rsa_key,
        "ecdsa": ed25519.Ed25519PrivateKey.generate(),
        "rsa-pss": ec.generate_private_key(ec.SECP256R1()),
    }
    with pytest.raises(CryptoKey, match="not a key for"):
        await crypto("sign", key=pem(keys[algorithm]), data="x", algorithm=algorithm)
    with pytest.raises(CryptoKey, match="not a key for"):
        await crypto("verify", key=public_pem(keys[algorithm]), data="x", algorithm=algorithm, signature=b"")


async def test_dsa_key_is_rejected(crypto):
    numbers = dsa.generate_parameters(1024)
    with pytest.raises(CryptoKey, match="not a key for"):
        await crypto("sign", key=pem(numbers.generate_private_key()), data="x", algorithm="rsa-pss")


async def test_key_with_a_passphrase_is_rejected(crypto, rsa_key):
    with pytest.raises(CryptoKey, match="readable") as caught:
        await crypto("sign", key=pem(rsa_key, BestAvailableEncryption(b"x")), data="x", algorithm="rsa-pss")
    assert "passphrase" in caught.value.hint


async def test_public_key_is_rejected_for_signing(crypto, rsa_key):
    with pytest.raises(CryptoKey, match="readable"):
        await crypto("sign", key=public_pem(rsa_key), data="x", algorithm="rsa-pss")


@pytest.mark.parametrize(
    "choice",
    [
        {"algorithm": "ed25519", "digest": "sha512"},
        {"algorithm": "ed25519", "form": "raw"},
        {"algorithm": "rsa-pss", "form": "raw"},
    ],
)
async def test_unsupported_options_are_rejected(crypto, choice):
    with pytest.raises(CryptoValue):
        await crypto("sign", key="k", data="x", **choice)


@given(st.binary(max_size=400), st.sampled_from(["ed25519", "ecdsa", "rsa-pss", "rsa-oaep"]))
@settings(max_examples=100, deadline=None)
def test_arbitrary_bytes_are_a_key_or_rejected(raw, scheme):
    for read in (private_key, public_key):
        with suppress(CryptoKey):
            read(raw, scheme, None)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_modified_key_is_a_key_or_rejected(data):
    raw = bytearray(pem(ec.derive_private_key(7, ec.SECP256R1())))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CryptoKey):
        private_key(bytes(raw), "ecdsa", "stored")
