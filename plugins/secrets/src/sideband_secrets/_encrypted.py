"""The encrypted store: one file, opened with a key file or a passphrase. Never stored in plain text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from attrs import define, field

from ._backends import Step, StoredSecret, Summary
from ._errors import SecretsDamaged, SecretsKeyMissing, SecretsRekeyRefused
from ._files import (
    locked,
    move_private,
    private_folder,
    read_private,
    remove_leftovers,
    remove_private,
    replace_private,
)
from ._keys import Keys
from ._sealing import Sealed, new_key_header, seal

STORE_FILE = "store.json"
_MAX_BYTES = 256 * 1024 * 1024


@define
class EncryptedBackend:
    """Keeps secrets in the encrypted file ``folder/store.json``. A ``BlockingBackend``.

    A new store uses a passphrase if one is given, otherwise a key file that is created beside it. An existing store
    records which of them it needs.

    Args:
        folder: the folder, accessible by its owner only.
        keys: the keys of the store.
        interactive: whether the user may be prompted for the passphrase.
    """

    folder: Path
    keys: Keys
    interactive: bool = False
    name: str = field(default="encrypted", init=False)

    @property
    def path(self) -> Path:
        """The file of the store."""
        return self.folder / STORE_FILE

    def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        return self._read_all().get(name)

    def summaries(self) -> tuple[Summary, ...]:
        """See ``Backend``."""
        return tuple(stored.summary for _, stored in sorted(self._read_all().items()))

    def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:
        """See ``Backend``."""
        private_folder(self.folder)
        sealed = self._sealed()
        if sealed is not None and self.interactive and not ask:
            self.keys.check_known(sealed)
        return () if sealed is None else tuple(self._opened(sealed).values())

    def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        with self._locked():
            sealed = self._sealed()
            secrets = {} if sealed is None else self._opened(sealed)
            if sealed is not None:
                self.keys.finish_rekey(sealed)
            before = secrets.pop(name, None)
            changed = step(before)
            if changed is not None:
                secrets[name] = changed
            if changed != before:
                self._save(secrets, *self._key_for(sealed))

    def rekey(self, to: Literal["file", "passphrase"], *, passphrase: str | None, key_file: Path | None) -> Path | None:
        """Re-encrypt the store with a new key. Afterwards, no other key opens it.

        The old key is discarded only when the new store is durable. A key file outside of the store's folder is kept,
        since other stores may need it.

        Args:
            to: the kind of the new key.
            passphrase: the new passphrase.
            key_file: the path of the new key file; by default that of the old one.

        Returns:
            The old key file, if it was kept.

        Raises:
            SecretsKeyMissing: if the configuration requires the other kind of key, or there is no store yet.
            SecretsRekeyRefused: if a key file that other stores may need would be replaced.
        """
        self.keys.check_source(to)
        with self._locked():
            sealed = self._sealed()
            if sealed is None:
                raise SecretsKeyMissing("the store does not exist yet", hint="store a secret first")
            secrets = self._opened(sealed)
            self.keys.finish_rekey(sealed)
            own = self.keys.file.parent == self.folder
            used_file = sealed.key_header["source"] == "file"
            if to == "passphrase":
                self._save(secrets, *self.keys.from_passphrase(passphrase or ""))
            elif key_file is not None and key_file != self.keys.file:
                self._save(secrets, new_key_header(), self.keys.create_file(key_file))
            elif own or not used_file:
                self._save_with_new_file(secrets, replaced=used_file)
                return None
            else:
                raise SecretsRekeyRefused(
                    f"other stores may need the key file `{self.keys.file}`",
                    hint="write a new key file: `sideband secrets rekey file --key-file PATH`",
                )
            if used_file and own:
                remove_private(self.keys.file)
            return self.keys.file if used_file and not own else None

    def _save_with_new_file(self, secrets: dict[str, StoredSecret], *, replaced: bool) -> None:
        path = self.keys.new_file if replaced else self.keys.file
        self._save(secrets, new_key_header(), self.keys.create_file(path))
        if replaced:
            move_private(self.keys.new_file, self.keys.file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(private_folder(self.folder) / "lock"):
            for path in (self.path, self.keys.file, self.keys.new_file):
                remove_leftovers(path)
            yield

    def _read_all(self) -> dict[str, StoredSecret]:
        private_folder(self.folder)
        sealed = self._sealed()
        return {} if sealed is None else self._opened(sealed)

    def _sealed(self) -> Sealed | None:
        raw = read_private(self.path, max_bytes=_MAX_BYTES)
        return None if raw is None else Sealed.parse(self.path, raw)

    def _opened(self, sealed: Sealed) -> dict[str, StoredSecret]:
        content = sealed.open(self.keys.of(sealed))
        try:
            return {name: StoredSecret.from_data(name, data) for name, data in json.loads(content).items()}
        except (KeyError, TypeError, AttributeError, ValueError):
            raise SecretsDamaged(self.path, "invalid content") from None

    def _key_for(self, sealed: Sealed | None) -> tuple[dict[str, Any], bytes]:
        return self.keys.create() if sealed is None else (sealed.key_header, self.keys.of(sealed))

    def _save(self, secrets: dict[str, StoredSecret], key_header: dict[str, Any], key: bytes) -> None:
        content = json.dumps({name: stored.current().to_data() for name, stored in secrets.items()}).encode()
        replace_private(self.path, seal(key, key_header, content))
