"""The op family passes the tests that every op family passes."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from sideband_testing.conformance import Example, OpFamilyConformance

KEY, NONCE, IV = b"k" * 32, b"n" * 12, b"i" * 16
SIGNED = {"data": "hello", "algorithm": "ed25519"}
HMAC_KEY = "a key that is long enough"


def private(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture(scope="module")
def keys():
    """Return keys by the names that examples have in braces."""
    edwards, large = ed25519.Ed25519PrivateKey.generate(), rsa.generate_private_key(65537, 2048)
    return {
        "private": private(edwards),
        "public": public(edwards),
        "rsa": private(large),
        "rsa_public": public(large),
    }


class TestCrypto(OpFamilyConformance):
    plugin = "op.crypto"
    max_steps = 6
    examples = (
        Example("crypto.hash", {"data": "hello"}),
        Example("crypto.hash", {"data": "hello", "algorithm": "md5"}, error="crypto.legacy"),
        Example("crypto.hmac", {"data": "hello", "key": HMAC_KEY}),
        Example("crypto.hmac_verify", {"data": "hello", "mac": b"m" * 32, "key": HMAC_KEY}, result=False),
        Example("crypto.compare", {"a": "x", "b": "y"}, result=False),
        Example("crypto.random", {"length": 16}),
        Example("crypto.aes_gcm_encrypt", {"data": "hello", "key": KEY}),
        Example(
            "crypto.aes_gcm_decrypt", {"ciphertext": b"c" * 32, "nonce": NONCE, "key": KEY}, error="crypto.decryption"
        ),
        Example("crypto.aes_cbc_encrypt", {"data": "hello", "key": KEY}),
        Example("crypto.aes_cbc_decrypt", {"ciphertext": b"c" * 32, "iv": IV, "key": KEY}, error="crypto.decryption"),
        Example("crypto.hkdf", {"key": KEY, "info": "session"}),
        Example("crypto.pbkdf2", {"key": "correct horse", "salt": b"s" * 16, "iterations": 60_000}),
        Example("crypto.scrypt", {"key": "correct horse", "salt": b"s" * 16, "n": 1 << 12}),
        Example("crypto.generate_key", {"kind": "ed25519"}),
        Example("crypto.sign", {"data": "hello", "algorithm": "ed25519", "key": "{private}"}),
        Example("crypto.verify", {**SIGNED, "key": "{public}", "signature": b"s" * 64}, result=False),
        Example("crypto.verify", {**SIGNED, "key": "no key", "signature": b"s" * 64}, error="crypto.key"),
        Example("crypto.rsa_oaep_encrypt", {"data": "hello", "key": "{rsa_public}"}),
        Example("crypto.rsa_oaep_decrypt", {"data": b"c" * 256, "key": "{rsa}"}, error="crypto.decryption"),
    )
    without_examples = {"crypto.create_key": "it stores a secret by another op"}

    @pytest.fixture(autouse=True)
    def made(self, keys):
        self.values.update(keys)
