"""The keyring of the operating system: Secret Service, macOS Keychain, KWallet, through the package `keyring`.

A keyring cannot list its entries, so an index entry contains their names. Each home uses its own service name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from ._backends import Step, StoredSecret, Summary
from ._errors import SecretsDamaged, SecretsLocked, SecretsUnavailable
from ._files import locked, private_folder, read_private, replace_private

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend as OsKeyring

# not a valid name of a secret
_INDEX = ":index"
_KNOWN = ("SecretService", "kwallet", "libsecret", "macOS", "Windows")
_MAX_MARK_BYTES = 4096
_UNSAFE = ("keyring.backends.null", "keyring.backends.fail", "keyrings.alt")


def find_keyring(*, only_known: bool) -> OsKeyring:
    """Probe and return the keyring of this machine.

    Args:
        only_known: whether it must be a known keyring of an operating system.

    Raises:
        SecretsUnavailable: if no keyring responds, or it stores values unencrypted.
    """
    from keyring.errors import KeyringLocked  # noqa: PLC0415  slow to import, and only one of several backends

    try:
        found = _safe(_chosen(), only_known=only_known)
        found.get_password("sideband", _INDEX)
    except KeyringLocked:
        # it exists; reading a secret reports that it is locked
        return found
    except SecretsUnavailable:
        raise
    except Exception as error:
        raise SecretsUnavailable(f"{type(error).__name__}: {error}") from error
    return found


def read_unlocked(service: str) -> tuple[StoredSecret, ...]:
    """Return all secrets of a Secret Service, over one connection, without asking the user to unlock it.

    Raises:
        SecretsLocked: if it is locked.
        SecretsUnavailable: if the keyring is of another kind, which might ask the user, or does not respond.
    """
    from keyring.backends import SecretService  # noqa: PLC0415  slow to import, and only one of several backends

    if not isinstance(_safe(_chosen(), only_known=False), SecretService.Keyring):
        raise SecretsUnavailable("only an op opens it, since it may ask the user")
    import secretstorage  # noqa: PLC0415  exists on Linux only

    with _keyring_errors(), closing(secretstorage.dbus_init()) as connection:
        items = list(secretstorage.search_items(connection, {"service": service}))
        is_locked = any(item.is_locked() for item in items)
        entries = {} if is_locked else {one.get_attributes().get("username", ""): one.get_secret() for one in items}
    if is_locked:
        raise _locked()
    try:
        return tuple(StoredSecret.from_data(name, json.loads(raw)) for name, raw in entries.items() if name != _INDEX)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise SecretsDamaged(Path(service), "an entry has an invalid format") from None


def _chosen() -> OsKeyring:
    """Return the keyring that the environment names, else that of the process.

    The package chooses that of the process once, so it would keep what a variable named for one host only.
    """
    import keyring.core  # noqa: PLC0415  slow to import, and only one of several backends

    name = os.environ.get("PYTHON_KEYRING_BACKEND")
    return keyring.core.load_keyring(name) if name else keyring.get_keyring()


def _locked() -> SecretsLocked:
    return SecretsLocked("OS keyring", hint="unlock it by logging in or in its own program")


def _safe(keyring: OsKeyring, *, only_known: bool) -> OsKeyring:
    candidates: list[OsKeyring] = list(getattr(keyring, "backends", [keyring]))
    for candidate in candidates:
        module = type(candidate).__module__
        known = module.removeprefix("keyring.backends.") in _KNOWN
        if known or not (only_known or module.startswith(_UNSAFE)):
            return candidate
    names = ", ".join(f"{type(one).__module__}.{type(one).__name__}" for one in candidates) or "none"
    raise SecretsUnavailable(f"no supported keyring that encrypts values ({names})")


@define
class KeyringBackend:
    """Keeps each secret in one entry of the keyring. A ``BlockingBackend``.

    Args:
        keyring: the result of `find_keyring`.
        service: the service name of all entries.
        folder: the folder of the lock file that serializes changes of several processes.
        mark: a file that is written before the first secret is stored, to record that this backend is in use.
    """

    keyring: OsKeyring = field(repr=False)
    service: str
    folder: Path
    mark: Path | None = None
    name: str = field(default="keyring", init=False)
    interactive: bool = field(default=True, init=False)

    def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        return self._read(name)

    def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:
        """See ``Backend``. Without asking, only an unlocked Secret Service is read."""
        if not ask:
            return read_unlocked(self.service)
        found = (self._read(name) for name in self._get(_INDEX) or {})
        return tuple(stored for stored in found if stored is not None)

    def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        with self._change() as index:
            before = self._read(name)
            changed = step(before)
            if changed is None:
                self._remove(name)
                index.pop(name, None)
                return
            # the value first: after a crash in between, the entry is not listed, and storing it again repairs the index
            if changed != before:
                self._put(name, changed.to_data())
            index[name] = _to_data(changed.summary)

    def summaries(self) -> tuple[Summary, ...]:
        """See ``Backend``."""
        index = self._get(_INDEX) or {}
        try:
            return tuple(_summary(name, data) for name, data in sorted(index.items()))
        except (KeyError, TypeError, AttributeError):
            raise SecretsDamaged(Path(self.service), "the index in the keyring has an invalid format") from None

    def _read(self, name: str) -> StoredSecret | None:
        data = self._get(name)
        if data is None:
            return None
        try:
            return StoredSecret.from_data(name, data)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise SecretsDamaged(Path(self.service), f"the entry `{name}` has an invalid format") from None

    @contextmanager
    def _change(self) -> Iterator[dict[str, Any]]:
        with locked(private_folder(self.folder) / "lock"):
            if self.mark is not None and read_private(self.mark, max_bytes=_MAX_MARK_BYTES) is None:
                replace_private(self.mark, b"secrets of this home are in the OS keyring\n")
            index = self._get(_INDEX) or {}
            before = json.dumps(index)
            yield index
            if json.dumps(index) != before:
                self._put(_INDEX, index)

    def _get(self, entry: str) -> dict[str, Any] | None:
        with _keyring_errors():
            text = self.keyring.get_password(self.service, entry)
        if text is None:
            return None
        try:
            data = json.loads(text)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise SecretsDamaged(Path(self.service), f"the entry `{entry}` has an invalid format")
        return data

    def _put(self, entry: str, data: dict[str, Any]) -> None:
        with _keyring_errors():
            self.keyring.set_password(self.service, entry, json.dumps(data))

    def _remove(self, entry: str) -> None:
        from keyring.errors import PasswordDeleteError  # noqa: PLC0415  slow to import

        with suppress(PasswordDeleteError), _keyring_errors():
            self.keyring.delete_password(self.service, entry)


@contextmanager
def _keyring_errors() -> Iterator[None]:
    from keyring.errors import KeyringLocked, PasswordDeleteError  # noqa: PLC0415  slow to import

    try:
        yield
    except PasswordDeleteError:
        raise
    except KeyringLocked:
        raise _locked() from None
    except Exception as error:  # noqa: BLE001  a backend may raise any exception, such as a D-Bus error
        # its message may contain the value
        raise SecretsUnavailable(f"it raised {type(error).__name__}") from None


def _to_data(summary: Summary) -> dict[str, Any]:
    return {
        "origins": list(summary.origins),
        "text": summary.text,
        "updated": summary.updated,
        "version": summary.version,
        "previous_until": summary.previous_until,
    }


def _summary(name: str, data: dict[str, Any]) -> Summary:
    previous_until = data.get("previous_until")
    return Summary(name, tuple(data["origins"]), data["text"], data["updated"], data.get("version", 1), previous_until)
