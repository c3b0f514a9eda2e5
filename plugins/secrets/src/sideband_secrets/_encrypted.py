"""The encrypted store: one sealed file, opened with a key file or a passphrase. Never plaintext."""

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
    remove_left_overs,
    remove_private,
    replace_private,
)
from ._keys import Keys
from ._sealing import Sealed, new_key_header, seal

_LARGEST = 256 * 1024 * 1024


@define
class EncryptedBackend:
    """Keeps secrets in ``folder/store.json``, sealed. A ``BlockingBackend``.

    A new store is opened by a passphrase if there is one, else by a key file that is created beside it. An existing
    one says itself what opens it.

    Args:
        folder: the folder, for its owner only.
        keys: what opens it.
        asks: whether the passphrase may be asked of a person.
    """

    folder: Path
    keys: Keys
    asks: bool = False
    name: str = field(default="encrypted", init=False)

    @property
    def path(self) -> Path:
        """The file of the store."""
        return self.folder / "store.json"

    def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        return self._read_all().get(name)

    def summaries(self) -> tuple[Summary, ...]:
        """See ``Backend``."""
        return tuple(stored.summary for _, stored in sorted(self._read_all().items()))

    def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        with self._locked():
            sealed = self._sealed()
            secrets = {} if sealed is None else self._opened(sealed)
            if sealed is not None:
                self.keys.settle(sealed)
            before = secrets.pop(name, None)
            changed = step(before)
            if changed is not None:
                secrets[name] = changed
            if changed != before:
                self._save(secrets, *self._key_for(sealed))

    def rekey(self, to: Literal["file", "passphrase"], *, passphrase: str | None, key_file: Path | None) -> Path | None:
        """Seal the store with a new key, which is the only one that opens it from then on.

        The old key is given up only when the new store is durable. A key file that the store does not keep in its own
        folder is left alone, since other stores may need it.

        Args:
            to: what opens it then.
            passphrase: the new one.
            key_file: where a new key file is put; by default in the place of the old one.

        Returns:
            The old key file, if it was left where it is.

        Raises:
            SecretsKeyMissing: the configuration insists on something else, or there is no store yet.
            SecretsRekeyRefused: a key file that others may need would have been replaced.
        """
        self.keys.check_source(to)
        with self._locked():
            sealed = self._sealed()
            if sealed is None:
                raise SecretsKeyMissing("there is no store yet", hint="store a secret first; it makes the store")
            secrets = self._opened(sealed)
            self.keys.settle(sealed)
            own = self.keys.file.parent == self.folder
            had_file = sealed.key_header["source"] == "file"
            if to == "passphrase":
                self._save(secrets, *self.keys.from_passphrase(passphrase or ""))
            elif key_file is not None and key_file != self.keys.file:
                self._save(secrets, new_key_header(), self.keys.create_file(key_file))
            elif own or not had_file:
                self._save_with_new_file(secrets, replaced=had_file)
                return None
            else:
                raise SecretsRekeyRefused(
                    f"the key file `{self.keys.file}` may open other stores too",
                    hint="give a new one: `sideband secrets rekey file --key-file PATH`",
                )
            if had_file and own:
                remove_private(self.keys.file)
            return self.keys.file if had_file and not own else None

    def _save_with_new_file(self, secrets: dict[str, StoredSecret], *, replaced: bool) -> None:
        place = self.keys.new_file if replaced else self.keys.file
        self._save(secrets, new_key_header(), self.keys.create_file(place))
        if replaced:
            move_private(self.keys.new_file, self.keys.file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(private_folder(self.folder) / "lock"):
            for path in (self.path, self.keys.file, self.keys.new_file):
                remove_left_overs(path)
            yield

    def _read_all(self) -> dict[str, StoredSecret]:
        private_folder(self.folder)
        sealed = self._sealed()
        return {} if sealed is None else self._opened(sealed)

    def _sealed(self) -> Sealed | None:
        raw = read_private(self.path, max_bytes=_LARGEST)
        return None if raw is None else Sealed.parse(self.path, raw)

    def _opened(self, sealed: Sealed) -> dict[str, StoredSecret]:
        content = sealed.open(self.keys.of(sealed))
        try:
            return {name: StoredSecret.from_data(name, data) for name, data in json.loads(content).items()}
        except (KeyError, TypeError, AttributeError, ValueError):
            raise SecretsDamaged(self.path, "its content is not in the format of a store") from None

    def _key_for(self, sealed: Sealed | None) -> tuple[dict[str, Any], bytes]:
        return self.keys.create() if sealed is None else (sealed.key_header, self.keys.of(sealed))

    def _save(self, secrets: dict[str, StoredSecret], key_header: dict[str, Any], key: bytes) -> None:
        content = json.dumps({name: stored.current().as_data() for name, stored in secrets.items()}).encode()
        replace_private(self.path, seal(key, key_header, content))
