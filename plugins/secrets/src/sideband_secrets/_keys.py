"""The key of the encrypted store: a key file or a passphrase, and switching from one to the other."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from attrs import define, field

from ._errors import SecretsDamaged, SecretsKeyMissing, SecretsWrongKey
from ._files import create_private, move_private, private_folder, read_private, remove_private
from ._sealing import KEY_BYTES, Sealed, derive, new_key_header, new_salt, passphrase_header

KeySource = Literal["auto", "file", "passphrase"]

_MAX_KEY_FILE = 4096


@define
class Keys:
    """The keys of one store.

    During a rekey, the new key file is stored beside the old one as ``NAME.new`` until the new store is durable. The
    key is whichever of the two files matches, so the store can be opened after a crash at any point.

    Args:
        file: the path of the key file, which may not exist yet.
        source: ``file`` or ``passphrase`` to require one of them.
        passphrase: returns the passphrase or ``None``; its argument is whether the passphrase is for a new store.
    """

    file: Path
    source: KeySource = "auto"
    passphrase: Callable[[bool], str | None] = field(default=lambda _new: None, repr=False)
    _derived: dict[str, bytes] = field(init=False, factory=dict, repr=False)

    @property
    def new_file(self) -> Path:
        """The temporary path of a new key file during a rekey."""
        return self.file.with_name(f"{self.file.name}.new")

    def of(self, sealed: Sealed) -> bytes:
        """Return the key that opens a store.

        Raises:
            SecretsKeyMissing: if the key file or passphrase that it needs is missing.
            SecretsWrongKey: if it was encrypted with another passphrase.
            SecretsDamaged: if the key file does not contain a key.
        """
        header = sealed.key_header
        self.check_source(header["source"])
        if header["source"] == "file":
            return self._matching(sealed)
        if (known := self._derived.get(header["salt"])) is None:
            known = derive(self._ask_passphrase(new=False), header)
            if not sealed.matches(known):
                raise SecretsWrongKey(sealed.path, "passphrase")
            # cache the key only if it is correct, so that a mistyped passphrase is asked for again
            self._derived[header["salt"]] = known
        return known

    def check_known(self, sealed: Sealed) -> None:
        """Check that a store can be opened without asking for its passphrase.

        Raises:
            SecretsKeyMissing: if it needs a passphrase that was not entered before.
        """
        header = sealed.key_header
        if header["source"] == "passphrase" and header["salt"] not in self._derived:
            raise _passphrase_missing()

    def check_source(self, source: str) -> None:
        """Check that the configuration allows this kind of key.

        Raises:
            SecretsKeyMissing: if the configuration requires the other kind.
        """
        if self.source not in ("auto", source):
            raise SecretsKeyMissing(
                f"the store needs a {source}, but the configuration requires a {self.source}",
                hint="set `key` in `[plugins.secrets]` to match, or remove the store and start over",
            )

    def create(self) -> tuple[dict[str, Any], bytes]:
        """Return the header and the key of a new store: from the passphrase if one is given, else from a key file."""
        passphrase = None if self.source == "file" else self.passphrase(True)
        if passphrase or self.source == "passphrase":
            return self.from_passphrase(passphrase or self._ask_passphrase(new=True))
        key = read_private(self.file, max_bytes=_MAX_KEY_FILE)
        if key is None:
            return new_key_header(), self.create_file(self.file)
        return new_key_header(), _parsed(self.file, key)

    def create_file(self, path: Path) -> bytes:
        """Create a key file and return its key."""
        private_folder(path.parent)
        key = os.urandom(KEY_BYTES)
        create_private(path, base64.b64encode(key) + b"\n")
        return key

    def from_passphrase(self, passphrase: str) -> tuple[dict[str, Any], bytes]:
        """Return the header and the key that a passphrase gives for a new store."""
        header = passphrase_header(new_salt())
        key = derive(passphrase, header)
        self._derived[header["salt"]] = key
        return header, key

    def finish_rekey(self, sealed: Sealed) -> None:
        """Finish a rekey that was interrupted by a crash: keep the new key file if it matches, otherwise remove it."""
        if sealed.key_header["source"] != "file" or (new := self._read(self.new_file)) is None:
            return
        if sealed.matches(new):
            move_private(self.new_file, self.file)
        else:
            remove_private(self.new_file)

    def _matching(self, sealed: Sealed) -> bytes:
        keys = list(self._read_files())
        if not keys:
            raise SecretsKeyMissing(
                f"key file `{self.file}` does not exist", hint="restore it; the store cannot be opened without it"
            )
        return next((key for key in keys if sealed.matches(key)), keys[0])

    def _read_files(self) -> Iterator[bytes]:
        for path in (self.file, self.new_file):
            if (key := self._read(path)) is not None:
                yield key

    def _read(self, path: Path) -> bytes | None:
        raw = read_private(path, max_bytes=_MAX_KEY_FILE)
        return None if raw is None else _parsed(path, raw)

    def _ask_passphrase(self, *, new: bool) -> str:
        if passphrase := self.passphrase(new):
            return passphrase
        raise _passphrase_missing()


def _passphrase_missing() -> SecretsKeyMissing:
    return SecretsKeyMissing(
        "the store needs a passphrase",
        hint="set SIDEBAND_SECRETS_PASSPHRASE, or set `prompt = true` in `[plugins.secrets]`",
    )


def _parsed(path: Path, raw: bytes) -> bytes:
    try:
        key = base64.b64decode(raw.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretsDamaged(path, f"expected a key of {KEY_BYTES} bytes")
    return key
