"""Chooses the backend of a host. An automatic choice is permanent, so that stored secrets stay reachable."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from getpass import getpass
from pathlib import Path

from attrs import evolve

from ._config import Config
from ._encrypted import STORE_FILE, EncryptedBackend
from ._errors import SecretsUnavailable
from ._keyring import KeyringBackend, find_keyring
from ._keys import Keys
from ._threads import BlockingBackend

PASSPHRASE_VARIABLE = "SIDEBAND_SECRETS_PASSPHRASE"  # noqa: S105  the name of a variable
_MARK = "in-keyring"


def choose_backend(config: Config, home: Path) -> BlockingBackend:
    """Open the configured backend: the encrypted file or the keyring. Blocking; a keyring is probed.

    Raises:
        SecretsUnavailable: if the keyring is configured or already in use, but unavailable.
    """
    folder = home / "secrets"
    if config.backend == "encrypted":
        return _encrypted(config, folder)
    if config.backend == "keyring":
        return _keyring(config, folder, only_known=False)
    if os.path.lexists(folder / _MARK):
        return _keyring(config, folder, only_known=True)
    return _best(config, folder)


def used_backend(config: Config, home: Path) -> str | None:
    """Return the name of the backend that secrets may be stored in, or ``None``. Opens and probes nothing."""
    folder = home / "secrets"
    if config.backend == "keyring" or (config.backend == "auto" and os.path.lexists(folder / _MARK)):
        return "keyring"
    return "encrypted" if config.backend != "memory" and os.path.lexists(folder / STORE_FILE) else None


def _best(config: Config, folder: Path) -> BlockingBackend:
    encrypted = _encrypted(config, folder)
    if os.path.lexists(encrypted.path):
        return encrypted
    try:
        return evolve(_keyring(config, folder, only_known=True), mark=folder / _MARK)
    except SecretsUnavailable:
        return encrypted


def keyring_service(config: Config, home: Path) -> str:
    """Return the service name of the entries in the keyring."""
    return config.service or f"sideband {home}"


def _keyring(config: Config, folder: Path, *, only_known: bool) -> KeyringBackend:
    service = keyring_service(config, folder.parent)
    return KeyringBackend(find_keyring(only_known=only_known), service, folder)


def _encrypted(config: Config, folder: Path) -> EncryptedBackend:
    is_given = bool(os.environ.get(PASSPHRASE_VARIABLE))
    interactive = config.prompt and not is_given and sys.stdin is not None and sys.stdin.isatty()
    keys = Keys(
        file=(config.key_file or folder / "key").expanduser(),
        source=config.key,
        passphrase=_passphrase(interactive=interactive),
    )
    return EncryptedBackend(folder=folder, keys=keys, interactive=interactive)


def _passphrase(*, interactive: bool) -> Callable[[bool], str | None]:
    def passphrase(new: bool) -> str | None:
        return os.environ.get(PASSPHRASE_VARIABLE) or (_ask(new) if interactive else None)

    return passphrase


def _ask(new: bool) -> str | None:
    while True:
        given = getpass("Passphrase for the sideband secrets store: ")
        if not new or given == getpass("Repeat the passphrase: "):
            return given or None
        sys.stderr.write("The passphrases differ.\n")
