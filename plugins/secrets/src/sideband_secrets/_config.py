"""The table `[plugins.secrets]`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["Config"]


class Config(BaseModel):
    """Where secrets are kept.

    Attributes:
        backend: ``keyring`` (of the operating system), ``encrypted`` (a file), ``memory`` (until the host ends), or
            ``auto``: the keyring where a real one answers, else the file; once something is stored it stays there.
        key: what opens the encrypted file: ``passphrase``, ``file``, or ``auto``: a new file is opened by the
            passphrase if there is one.
        key_file: where the key file is; by default beside the store, in ``SIDEBAND_HOME/secrets/key``.
        prompt: whether to ask for a passphrase on the terminal if ``SIDEBAND_SECRETS_PASSPHRASE`` is not set.
        service: the service name in the keyring; by default one that names the home folder.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Literal["auto", "keyring", "encrypted", "memory"] = "auto"
    key: Literal["auto", "file", "passphrase"] = "auto"
    key_file: Path | None = None
    prompt: bool = False
    service: str | None = None
