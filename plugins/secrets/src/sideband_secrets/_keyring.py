"""The keyring of the operating system: Secret Service, macOS Keychain, KWallet, through the package `keyring`.

A keyring can't list its entries, so an index entry names them; a home has a service name of its own in the keyring.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from ._backends import Step, StoredSecret, Summary
from ._errors import SecretsDamaged, SecretsLocked, SecretsUnavailable
from ._files import locked, private_folder, read_private, replace_private

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend as OsKeyring

# can't be a secret's name
_INDEX = ":index"
_REAL = ("SecretService", "kwallet", "libsecret", "macOS", "Windows")
_LARGEST_MARK = 4096
_UNSAFE = ("keyring.backends.null", "keyring.backends.fail", "keyrings.alt")


def find_keyring(*, only_known: bool) -> OsKeyring:
    """The keyring of this machine, tried out.

    Args:
        only_known: whether it must be one that is known to belong to the operating system.

    Raises:
        SecretsUnavailable: there is none, or it doesn't answer; or it is one that keeps values readable.
    """
    import keyring  # noqa: PLC0415  slow to import, and only one of several backends
    from keyring.errors import KeyringLocked  # noqa: PLC0415  as above

    try:
        found = _safe(keyring.get_keyring(), only_known=only_known)
        found.get_password("sideband", _INDEX)
    except KeyringLocked:
        # it is there: what to do about it is said when something is read
        return found
    except SecretsUnavailable:
        raise
    except Exception as error:
        raise SecretsUnavailable(f"{type(error).__name__}: {error}") from error
    return found


def _safe(keyring: OsKeyring, *, only_known: bool) -> OsKeyring:
    candidates: list[OsKeyring] = list(getattr(keyring, "backends", [keyring]))
    for candidate in candidates:
        module = type(candidate).__module__
        known = module.removeprefix("keyring.backends.") in _REAL
        if known or not (only_known or module.startswith(_UNSAFE)):
            return candidate
    names = ", ".join(f"{type(one).__module__}.{type(one).__name__}" for one in candidates) or "none"
    raise SecretsUnavailable(f"what is found is no keyring that protects values ({names})")


@define
class KeyringBackend:
    """Keeps each secret in an entry of the keyring. A ``BlockingBackend``.

    Args:
        keyring: as `find_keyring` found it.
        service: the service name of all entries.
        folder: where the lock file is that orders the changes of several processes.
        mark: a file to write before something is stored for the first time, to note that it is stored here.
    """

    keyring: OsKeyring = field(repr=False)
    service: str
    folder: Path
    mark: Path | None = None
    name: str = field(default="keyring", init=False)
    asks: bool = field(default=True, init=False)

    def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        return self._read(name)

    def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        with self._change() as index:
            before = self._read(name)
            changed = step(before)
            if changed is None:
                self._remove(name)
                index.pop(name, None)
                return
            # first the value: a crash in between leaves an entry that is not listed, and storing again mends it
            if changed != before:
                self._put(name, changed.as_data())
            index[name] = _as_data(changed.summary)

    def summaries(self) -> tuple[Summary, ...]:
        """See ``Backend``."""
        index = self._get(_INDEX) or {}
        try:
            return tuple(_summary(name, data) for name, data in sorted(index.items()))
        except (KeyError, TypeError, AttributeError):
            raise SecretsDamaged(Path(self.service), "the index in the keyring is not in its format") from None

    def _read(self, name: str) -> StoredSecret | None:
        data = self._get(name)
        if data is None:
            return None
        try:
            return StoredSecret.from_data(name, data)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise SecretsDamaged(Path(self.service), f"the entry `{name}` is not in its format") from None

    @contextmanager
    def _change(self) -> Iterator[dict[str, Any]]:
        with locked(private_folder(self.folder) / "lock"):
            if self.mark is not None and read_private(self.mark, max_bytes=_LARGEST_MARK) is None:
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
            raise SecretsDamaged(Path(self.service), f"the entry `{entry}` is not in its format")
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
        raise SecretsLocked("the OS keyring", hint="unlock it (log in, or open it in its own program)") from None
    except Exception as error:  # noqa: BLE001  a backend may raise anything, D-Bus errors among them
        # what it says may quote what it was given
        raise SecretsUnavailable(f"it failed with {type(error).__name__}") from None


def _as_data(summary: Summary) -> dict[str, Any]:
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
