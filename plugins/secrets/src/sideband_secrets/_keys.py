"""What opens the encrypted store: a key file, or a passphrase. And how one takes the place of the other."""

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

    A new key file lies beside the old one, as ``NAME.new``, until the store that it seals is durable. Whichever of the
    two fits is the key, so that a crash anywhere between leaves a store that opens.

    Args:
        file: where the key file is, or will be created.
        source: ``file`` or ``passphrase`` to insist on one of them.
        passphrase: answers the passphrase, given whether it is for a new store; ``None`` if there is none.
    """

    file: Path
    source: KeySource = "auto"
    passphrase: Callable[[bool], str | None] = field(default=lambda _new: None, repr=False)
    _derived: dict[str, bytes] = field(init=False, factory=dict, repr=False)

    @property
    def new_file(self) -> Path:
        """Where a key file lies that is about to take the place of the one that is there."""
        return self.file.with_name(f"{self.file.name}.new")

    def of(self, sealed: Sealed) -> bytes:
        """The key that opens a store.

        Raises:
            SecretsKeyMissing: there is none of the kind that it needs.
            SecretsWrongKey: it was sealed with another one.
            SecretsDamaged: the key file holds no key.
        """
        header = sealed.key_header
        self.check_source(header["source"])
        if header["source"] == "file":
            return self._fitting(sealed)
        if (known := self._derived.get(header["salt"])) is None:
            known = derive(self._given(new=False), header)
            if not sealed.fits(known):
                raise SecretsWrongKey(sealed.path, "passphrase")
            # once it was right: a mistyped one is asked for again
            self._derived[header["salt"]] = known
        return known

    def check_source(self, source: str) -> None:
        """Check that the configuration lets the store be opened in this way.

        Raises:
            SecretsKeyMissing: it insists on the other one.
        """
        if self.source not in ("auto", source):
            raise SecretsKeyMissing(
                f"the store is opened by a {source}, and the configuration insists on a {self.source}",
                hint="set `key` in `[plugins.secrets]` back, or remove the store and start afresh",
            )

    def create(self) -> tuple[dict[str, Any], bytes]:
        """The key of a new store, and how it is had: by the passphrase if there is one, else by a key file."""
        passphrase = None if self.source == "file" else self.passphrase(True)
        if passphrase or self.source == "passphrase":
            return self.from_passphrase(passphrase or self._given(new=True))
        key = read_private(self.file, max_bytes=_MAX_KEY_FILE)
        if key is None:
            return new_key_header(), self.create_file(self.file)
        return new_key_header(), _parsed(self.file, key)

    def create_file(self, path: Path) -> bytes:
        """A new key, in a new file."""
        private_folder(path.parent)
        key = os.urandom(KEY_BYTES)
        create_private(path, base64.b64encode(key) + b"\n")
        return key

    def from_passphrase(self, passphrase: str) -> tuple[dict[str, Any], bytes]:
        """The key that a passphrase gives for a new store, and how."""
        header = passphrase_header(new_salt())
        key = derive(passphrase, header)
        self._derived[header["salt"]] = key
        return header, key

    def settle(self, sealed: Sealed) -> None:
        """Finish what a crash cut off: the new key file becomes the key file if it is the one that fits."""
        if sealed.key_header["source"] != "file" or (new := self._read(self.new_file)) is None:
            return
        if sealed.fits(new):
            move_private(self.new_file, self.file)
        else:
            remove_private(self.new_file)

    def _fitting(self, sealed: Sealed) -> bytes:
        keys = list(self._in_files())
        if not keys:
            raise SecretsKeyMissing(
                f"the key file `{self.file}` is not there", hint="without it the store can't be opened; restore it"
            )
        return next((key for key in keys if sealed.fits(key)), keys[0])

    def _in_files(self) -> Iterator[bytes]:
        for path in (self.file, self.new_file):
            if (key := self._read(path)) is not None:
                yield key

    def _read(self, path: Path) -> bytes | None:
        raw = read_private(path, max_bytes=_MAX_KEY_FILE)
        return None if raw is None else _parsed(path, raw)

    def _given(self, *, new: bool) -> str:
        if passphrase := self.passphrase(new):
            return passphrase
        raise SecretsKeyMissing(
            "the store is opened by a passphrase, and none is given",
            hint="set SIDEBAND_SECRETS_PASSPHRASE, or `prompt = true` in `[plugins.secrets]`",
        )


def _parsed(path: Path, raw: bytes) -> bytes:
    try:
        key = base64.b64decode(raw.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretsDamaged(path, f"it does not hold a key of {KEY_BYTES} bytes")
    return key
