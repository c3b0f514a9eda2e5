"""The format of the encrypted store: what is in the file, and telling a wrong key from a damaged file.

One JSON object. `key` says how the key is had, `check` is a value that only the right key gives, `data` is AES-256-GCM
over the content with everything before it as associated data, and `digest` is SHA-256 over all the rest:

- the digest does not fit, or a byte is not as it would be written: the file is damaged, whatever the key;
- it fits, and the check does not: the key is another one;
- both fit, and the content does not open: somebody changed the file on purpose.
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
# a file must not make its reader take any amount of memory and time
_SCRYPT_MOST = {"n": 2**20, "r": 8, "p": 4}


@frozen
class Sealed:
    """A store as it lies in its file, intact but unopened.

    Args:
        path: where it was read from, for messages.
        header: everything but the content.
        data: the content, encrypted.
    """

    path: Path
    header: dict[str, Any]
    data: bytes = field(repr=False)

    @classmethod
    def parse(cls, path: Path, raw: bytes) -> Sealed:
        """Read a file and check that it is as it was written.

        Raises:
            SecretsDamaged: it is not.
            SecretsNewer: a later version of the format is written in it.
        """
        try:
            content = json.loads(raw)
            digest, data = content.pop("digest"), content.pop("data")
            if not hmac.compare_digest(digest, _digest(content, data)) or _written(content, data) != raw:
                raise SecretsDamaged(path, "its checksum does not fit")
            if content["format"] == _FORMAT and content["version"] in _NEWER:
                raise SecretsNewer(path, content["version"])
            if content["format"] != _FORMAT or content["version"] != _VERSION:
                raise SecretsDamaged(path, "it is not in the format of a store")
            _check_key_header(content["key"])
            return cls(path, content, _decode(data))
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            if isinstance(error, SecretsDamaged):
                raise
            raise SecretsDamaged(path, "it is not in the format of a store") from None

    @property
    def key_header(self) -> dict[str, Any]:
        """How the key is had: ``source``, and for a passphrase how to derive it."""
        header: dict[str, Any] = self.header["key"]
        return header

    def fits(self, key: bytes) -> bool:
        """Whether it was sealed with this key."""
        return hmac.compare_digest(str(self.header["check"]).encode(), _check(key).encode())

    def open(self, key: bytes) -> bytes:
        """The content.

        Raises:
            SecretsWrongKey: the key is another one.
            SecretsDamaged: the file was changed.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  slow to import, and not always needed
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  as above

        if not self.fits(key):
            source = "passphrase" if self.key_header["source"] == "passphrase" else "key file"
            raise SecretsWrongKey(self.path, source)
        try:
            return AESGCM(key).decrypt(_decode(self.header["nonce"]), self.data, _canonical(self.header))
        except (InvalidTag, ValueError):
            raise SecretsDamaged(self.path, "it was changed by something that is not sideband") from None


def seal(key: bytes, key_header: dict[str, Any], content: bytes) -> bytes:
    """The file for ``content``, sealed with ``key``, of which ``key_header`` says how it is had."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  slow to import

    nonce = os.urandom(_NONCE_BYTES)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "key": key_header,
        "check": _check(key),
        "nonce": _encode(nonce),
    }
    return _written(header, _encode(AESGCM(key).encrypt(nonce, content, _canonical(header))))


def new_key_header() -> dict[str, Any]:
    """How the key of a store that is opened by a key file is had."""
    return {"source": "file"}


def passphrase_header(salt: bytes) -> dict[str, Any]:
    """How a new store derives its key from a passphrase."""
    return {"source": "passphrase", "kdf": "scrypt", **_SCRYPT, "salt": _encode(salt)}


def new_salt() -> bytes:
    """Random bytes for ``passphrase_header``."""
    return os.urandom(_SALT_BYTES)


def derive(passphrase: str, key_header: dict[str, Any]) -> bytes:
    """The key that a passphrase gives, as the header says. Takes about half a second and 128 MiB, on purpose."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415  slow to import

    costs = {name: key_header[name] for name in _SCRYPT}
    return Scrypt(salt=_decode(key_header["salt"]), length=KEY_BYTES, **costs).derive(passphrase.encode())


def _check_key_header(header: dict[str, Any]) -> None:
    """What stands in the file must not make its reader fail in ways, or take times, that nobody expects."""
    if header == new_key_header():
        return
    known = header["source"] == "passphrase" and header["kdf"] == "scrypt"
    if not known or set(header) != {"source", "kdf", "salt", *_SCRYPT}:
        raise ValueError("key")
    for name, most in _SCRYPT_MOST.items():
        if type(header[name]) is not int or not _SCRYPT[name] <= header[name] <= most:
            raise ValueError(name)
    if header["n"] & (header["n"] - 1) or len(_decode(header["salt"])) != _SALT_BYTES:
        raise ValueError("key")


def _check(key: bytes) -> str:
    return _encode(hmac.digest(key, b"sideband-secrets: is this the key?", "sha256"))


def _written(header: dict[str, Any], data: str) -> bytes:
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
        raise ValueError("no base64") from error
