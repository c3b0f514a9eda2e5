"""The encrypted store: one sealed file, opened with a key file or a passphrase. Never plaintext."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from attrs import define, field

from ._backends import Stored, Summary
from ._errors import SecretsDamaged, SecretsKeyMissing
from ._files import create_private, locked, private_folder, read_private, replace_private
from ._sealing import KEY_BYTES, Sealed, derive, new_salt, passphrase_header, seal

__all__ = ["EncryptedBackend"]

_Source = Literal["auto", "file", "passphrase"]


@define
class EncryptedBackend:
    """Keeps secrets in ``folder/store.json``, sealed.

    A new store is opened by a passphrase if there is one, else by a key file that is created beside it. An existing
    one says itself what opens it.

    Args:
        folder: the folder, for its owner only.
        key_file: where the key file is, or will be created.
        source: ``file`` or ``passphrase`` to insist on one of them.
        passphrase: answers the passphrase, given whether it is for a new store; ``None`` if there is none.
        asks: whether ``passphrase`` may ask a person.
    """

    folder: Path
    key_file: Path
    source: _Source = "auto"
    passphrase: Callable[[bool], str | None] = field(default=lambda _new: None, repr=False)
    asks: bool = False
    name: str = field(default="encrypted", init=False)
    _derived: dict[str, bytes] = field(init=False, factory=dict, repr=False)

    @property
    def path(self) -> Path:
        """The file of the store."""
        return self.folder / "store.json"

    def read(self, name: str) -> Stored | None:
        """See ``Backend``."""
        private_folder(self.folder)
        return self._load()[0].get(name)

    def write(self, stored: Stored) -> None:
        """See ``Backend``."""
        with self._change() as secrets:
            secrets[stored.name] = stored

    def delete(self, name: str) -> bool:
        """See ``Backend``."""
        with self._change() as secrets:
            return secrets.pop(name, None) is not None

    def summaries(self) -> tuple[Summary, ...]:
        """See ``Backend``."""
        private_folder(self.folder)
        return tuple(stored.summary for _, stored in sorted(self._load()[0].items()))

    @contextmanager
    def _change(self) -> Iterator[dict[str, Stored]]:
        private_folder(self.folder)
        with locked(self.folder / "lock"):
            secrets, key_header = self._load()
            before = dict(secrets)
            yield secrets
            if secrets != before:
                self._save(secrets, key_header)

    def _load(self) -> tuple[dict[str, Stored], dict[str, Any] | None]:
        """The secrets, and how the key of their file is had (``None`` if there is no file)."""
        raw = read_private(self.path)
        if raw is None:
            return {}, None
        sealed = Sealed.parse(self.path, raw)
        key = self._key(sealed.key_header)
        content = sealed.open(key)
        if sealed.key_header["source"] == "passphrase":
            # once it was right: a mistyped one is asked for again
            self._derived[sealed.key_header["salt"]] = key
        try:
            secrets = {name: Stored.from_data(name, data) for name, data in json.loads(content).items()}
        except (KeyError, TypeError, AttributeError, ValueError):
            raise SecretsDamaged(self.path, "its content is not in the format of a store") from None
        return secrets, sealed.key_header

    def _save(self, secrets: dict[str, Stored], key_header: dict[str, Any] | None) -> None:
        if key_header is None:
            key_header = self._new_key_header()
        content = json.dumps({name: stored.as_data() for name, stored in secrets.items()}).encode()
        replace_private(self.path, seal(self._key(key_header), key_header, content))

    def _new_key_header(self) -> dict[str, Any]:
        passphrase = None if self.source == "file" else self.passphrase(True)
        if passphrase:
            header = passphrase_header(new_salt())
            self._derived[header["salt"]] = derive(passphrase, header)
            return header
        if self.source == "passphrase":
            raise _no_passphrase()
        if read_private(self.key_file) is None:
            private_folder(self.key_file.parent)
            create_private(self.key_file, base64.b64encode(os.urandom(KEY_BYTES)) + b"\n")
        return {"source": "file"}

    def _key(self, key_header: dict[str, Any]) -> bytes:
        source = key_header["source"]
        if self.source not in ("auto", source):
            raise SecretsKeyMissing(
                f"the store is opened by a {source}, and the configuration insists on a {self.source}",
                hint="set `key` in `[plugins.secrets]` back, or remove the store and start afresh",
            )
        return self._key_from_file() if source == "file" else self._key_from_passphrase(key_header)

    def _key_from_file(self) -> bytes:
        raw = read_private(self.key_file)
        if raw is None:
            raise SecretsKeyMissing(
                f"the key file `{self.key_file}` is not there", hint="without it the store can't be opened; restore it"
            )
        try:
            key = base64.b64decode(raw.strip(), validate=True)
        except binascii.Error:
            key = b""
        if len(key) != KEY_BYTES:
            raise SecretsDamaged(self.key_file, f"it does not hold a key of {KEY_BYTES} bytes")
        return key

    def _key_from_passphrase(self, key_header: dict[str, Any]) -> bytes:
        if (known := self._derived.get(key_header["salt"])) is not None:
            return known
        passphrase = self.passphrase(False)
        if not passphrase:
            raise _no_passphrase()
        return derive(passphrase, key_header)


def _no_passphrase() -> SecretsKeyMissing:
    return SecretsKeyMissing(
        "the store is opened by a passphrase, and none is given",
        hint="set SIDEBAND_SECRETS_PASSPHRASE, or `prompt = true` in `[plugins.secrets]`",
    )
