"""Which backend a host uses. What was chosen automatically stays chosen, so that no secret is lost sight of."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from getpass import getpass
from pathlib import Path

from attrs import evolve

from ._config import Config
from ._encrypted import EncryptedBackend
from ._errors import SecretsUnavailable
from ._keyring import KeyringBackend, find_keyring
from ._keys import Keys
from ._threads import BlockingBackend

PASSPHRASE_VARIABLE = "SIDEBAND_SECRETS_PASSPHRASE"  # noqa: S105  the name of it
_MARK = "in-keyring"


def choose_backend(config: Config, home: Path) -> BlockingBackend:
    """Open the configured backend that keeps secrets in files or in the keyring. Blocks; a keyring is tried out.

    Raises:
        SecretsUnavailable: the keyring is configured, or holds what was stored before, and can't be used.
    """
    folder = home / "secrets"
    if config.backend == "encrypted":
        return _encrypted(config, folder)
    if config.backend == "keyring":
        return _keyring(config, folder, only_known=False)
    if os.path.lexists(folder / _MARK):
        return _keyring(config, folder, only_known=True)
    return _best(config, folder)


def _best(config: Config, folder: Path) -> BlockingBackend:
    encrypted = _encrypted(config, folder)
    if os.path.lexists(encrypted.path):
        return encrypted
    try:
        return evolve(_keyring(config, folder, only_known=True), mark=folder / _MARK)
    except SecretsUnavailable:
        return encrypted


def _keyring(config: Config, folder: Path, *, only_known: bool) -> KeyringBackend:
    service = config.service or f"sideband {folder.parent}"
    return KeyringBackend(find_keyring(only_known=only_known), service, folder)


def _encrypted(config: Config, folder: Path) -> EncryptedBackend:
    asks = config.prompt and sys.stdin is not None and sys.stdin.isatty()
    keys = Keys(
        file=(config.key_file or folder / "key").expanduser(),
        source=config.key,
        passphrase=_passphrase(asks=asks),
    )
    return EncryptedBackend(folder=folder, keys=keys, asks=asks)


def _passphrase(*, asks: bool) -> Callable[[bool], str | None]:
    def passphrase(new: bool) -> str | None:
        return os.environ.get(PASSPHRASE_VARIABLE) or (_ask(new) if asks else None)

    return passphrase


def _ask(new: bool) -> str | None:
    while True:
        given = getpass("Passphrase for sideband's secrets: ")
        if not new or given == getpass("The same again: "):
            return given or None
        sys.stderr.write("They differ.\n")
