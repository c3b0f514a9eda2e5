"""The format of the encrypted store, which distinguishes a wrong key from a damaged file.

The file is one JSON object. `key` describes the source of the key, `check` is a value that only the correct key
produces, `data` is the content, encrypted with AES-256-GCM with the preceding fields as associated data, and `digest`
is SHA-256 over all other fields:

- If the digest does not match, or the JSON is not canonical, the file is damaged, regardless of the key.
- If the digest matches but `check` does not, the key is wrong.
- If both match but decryption fails, the file was modified deliberately.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ._errors import SecretsDamaged, SecretsNewer, SecretsWrongKey

KEY_BYTES = 32
_FORMAT = "sideband-secrets"
_VERSION = 1
_NEWER = range(_VERSION + 1, 1000)
_NONCE_BYTES = 12
_SALT_BYTES = 16
_SCRYPT = {"n": 2**17, "r": 8, "p": 1}
# a hostile file must not cause unlimited memory use and time
_SCRYPT_MAX = {"n": 2**20, "r": 8, "p": 4}


@frozen
class Sealed:
    """A store as read from its file, intact but still encrypted.

    Args:
        path: the file, for messages.
        header: all fields except the content.
        data: the encrypted content.
    """

    path: Path
    header: dict[str, Any]
    data: bytes = field(repr=False)

    @classmethod
    def parse(cls, path: Path, raw: bytes) -> Sealed:
        """Parse a file and check its integrity.

        Raises:
            SecretsDamaged: if it is damaged.
            SecretsNewer: if it has a newer format.
        """
        try:
            content = json.loads(raw)
            digest, data = content.pop("digest"), content.pop("data")
            if not hmac.compare_digest(digest, _digest(content, data)) or _serialize(content, data) != raw:
                raise SecretsDamaged(path, "checksum mismatch")
            if content["format"] == _FORMAT and content["version"] in _NEWER:
                raise SecretsNewer(path, content["version"])
            if content["format"] != _FORMAT or content["version"] != _VERSION:
                raise SecretsDamaged(path, "invalid format")
            _check_key_header(content["key"])
            return cls(path, content, _decode(data))
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            if isinstance(error, SecretsDamaged):
                raise
            raise SecretsDamaged(path, "invalid format") from None

    @property
    def key_header(self) -> dict[str, Any]:
        """The source of the key: ``source``, and for a passphrase the parameters of the key derivation."""
        header: dict[str, Any] = self.header["key"]
        return header

    def matches(self, key: bytes) -> bool:
        """Return whether the store was encrypted with this key."""
        return hmac.compare_digest(str(self.header["check"]).encode(), _check(key).encode())

    def open(self, key: bytes) -> bytes:
        """Decrypt the content.

        Raises:
            SecretsWrongKey: if the key is wrong.
            SecretsDamaged: if the file was modified.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  slow to import, and not always needed
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  as above

        if not self.matches(key):
            source = "passphrase" if self.key_header["source"] == "passphrase" else "key file"
            raise SecretsWrongKey(self.path, source)
        try:
            return AESGCM(key).decrypt(_decode(self.header["nonce"]), self.data, _canonical(self.header))
        except (InvalidTag, ValueError):
            raise SecretsDamaged(self.path, "it was modified by another program") from None


def seal(key: bytes, key_header: dict[str, Any], content: bytes) -> bytes:
    """Return the file content for ``content``, encrypted with ``key`` and described by ``key_header``."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  slow to import

    nonce = os.urandom(_NONCE_BYTES)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "key": key_header,
        "check": _check(key),
        "nonce": _encode(nonce),
    }
    return _serialize(header, _encode(AESGCM(key).encrypt(nonce, content, _canonical(header))))


def new_key_header() -> dict[str, Any]:
    """Return the header of a store that uses a key file."""
    return {"source": "file"}


def passphrase_header(salt: bytes) -> dict[str, Any]:
    """Return the header of a new store that uses a passphrase."""
    return {"source": "passphrase", "kdf": "scrypt", **_SCRYPT, "salt": _encode(salt)}


def new_salt() -> bytes:
    """Return a random salt for ``passphrase_header``."""
    return os.urandom(_SALT_BYTES)


def derive(passphrase: str, key_header: dict[str, Any]) -> bytes:
    """Derive the key from a passphrase. By design, this takes about half a second and 128 MiB."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415  slow to import

    costs = {name: key_header[name] for name in _SCRYPT}
    return Scrypt(salt=_decode(key_header["salt"]), length=KEY_BYTES, **costs).derive(passphrase.encode())


def _check_key_header(header: dict[str, Any]) -> None:
    """Check the header, so that a hostile file cannot cause unexpected errors or excessive key derivation."""
    if header == new_key_header():
        return
    known = header["source"] == "passphrase" and header["kdf"] == "scrypt"
    if not known or set(header) != {"source", "kdf", "salt", *_SCRYPT}:
        raise ValueError("key")
    for name, maximum in _SCRYPT_MAX.items():
        if type(header[name]) is not int or not _SCRYPT[name] <= header[name] <= maximum:
            raise ValueError(name)
    if header["n"] & (header["n"] - 1) or len(_decode(header["salt"])) != _SALT_BYTES:
        raise ValueError("key")


def _check(key: bytes) -> str:
    return _encode(hmac.digest(key, b"sideband-secrets: is this the key?", "sha256"))


def _serialize(header: dict[str, Any], data: str) -> bytes:
    return json.dumps({**header, "data": data, "digest": _digest(header, data)}).encode()


def _digest(header: dict[str, Any], data: str) -> str:
    return hashlib.sha256(_canonical({**header, "data": data})).hexdigest()


def _canonical(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("invalid base64") from error
