"""Which backend a host uses. What was chosen automatically stays chosen, so that no secret is lost sight of."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from getpass import getpass
from pathlib import Path

from ._backends import Backend, MemoryBackend
from ._config import Config
from ._encrypted import EncryptedBackend
from ._errors import SecretsUnavailable
from ._files import private_folder, read_private, replace_private
from ._keyring import KeyringBackend, find_keyring

__all__ = ["PASSPHRASE_VARIABLE", "choose_backend", "remember"]

PASSPHRASE_VARIABLE = "SIDEBAND_SECRETS_PASSPHRASE"  # noqa: S105  the name of it
_MARK = "in-keyring"


def choose_backend(config: Config, home: Path) -> Backend:
    """Open the configured backend. Blocks; a keyring is tried out.

    Raises:
        SecretsUnavailable: the keyring is configured, or holds what was stored before, and can't be used.
    """
    folder = home / "secrets"
    if config.backend == "memory":
        return MemoryBackend()
    if config.backend == "encrypted":
        return _encrypted(config, folder)
    if config.backend == "keyring":
        return _keyring(config, folder, only_known=False)
    if read_private(folder / _MARK) is not None:
        return _keyring(config, folder, only_known=True)
    return _best(config, folder)


def remember(config: Config, home: Path, backend: Backend) -> None:
    """Note an automatic choice of the keyring before something is stored there; the file notes itself."""
    folder = home / "secrets"
    if config.backend == "auto" and backend.name == "keyring" and read_private(folder / _MARK) is None:
        replace_private(private_folder(folder) / _MARK, b"secrets of this home are in the OS keyring\n")


def _best(config: Config, folder: Path) -> Backend:
    encrypted = _encrypted(config, folder)
    if encrypted.path.exists():
        return encrypted
    try:
        return _keyring(config, folder, only_known=True)
    except SecretsUnavailable:
        return encrypted


def _keyring(config: Config, folder: Path, *, only_known: bool) -> KeyringBackend:
    service = config.service or f"sideband {folder.parent}"
    return KeyringBackend(find_keyring(only_known=only_known), service, folder)


def _encrypted(config: Config, folder: Path) -> EncryptedBackend:
    asks = config.prompt and sys.stdin is not None and sys.stdin.isatty()
    return EncryptedBackend(
        folder=folder,
        key_file=(config.key_file or folder / "key").expanduser(),
        source=config.key,
        passphrase=_passphrase(asks=asks),
        asks=asks,
    )


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
