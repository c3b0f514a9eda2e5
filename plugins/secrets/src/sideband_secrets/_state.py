"""The state of the plugin: where the secrets of one host come from, and in which order these places are asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

import anyio
from attrs import define, evolve, field
from sideband import SidebandError
from sideband.ops import OpContext

from ._backends import Backend, MemoryBackend, Step, StoredSecret, Summary
from ._choice import PASSPHRASE_VARIABLE, choose_backend
from ._config import Config
from ._encrypted import EncryptedBackend
from ._environment import EnvironmentBackend
from ._errors import SecretMissing, SecretReadOnly, SecretsRekeyRefused
from ._models import SecretRekeyParams
from ._threads import ThreadedBackend, run_unattended
from ._vault import VaultBackend, find_token
from ._vault_client import VaultClient


class Protector(Protocol):
    """Who makes values known to the redactor: a dispatch, or the plugin itself."""

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """See ``OpContext.protect``."""


@define
class Secrets:
    """Secrets of one host. Whatever comes out of it is known to the redactor before anybody sees it.

    The own store is asked first, then the other sources in the order of the configuration. The first that has a secret
    of the name answers; one that can't be asked ends the search, since another place may have another value.
    """

    config: Config
    home: Path
    protector: Protector = field(repr=False)
    _own: Backend | None = field(init=False, default=None)
    _opening: anyio.Lock = field(init=False, factory=anyio.Lock)
    _environment: EnvironmentBackend = field(init=False)
    _vault: VaultBackend | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._environment = EnvironmentBackend(self.config.environment)
        if (address := self.config.vault.address) is not None:
            client = VaultClient(self.config.vault, address, self._vault_token)
            self._vault = VaultBackend(self.config.vault, client)

    async def start(self) -> None:
        """Make known what the environment holds, whether or not somebody asks for it."""
        for name in self.config.environment:
            if (stored := await self._environment.read(name)) is not None:
                self._protect(stored, self.protector)

    async def aclose(self) -> None:
        """Close connections."""
        if self._vault is not None:
            await self._vault.client.aclose()

    async def read(self, name: str, protector: Protector, *, audience: str | None = None) -> StoredSecret:
        """The secret.

        Raises:
            SecretMissing: there is none of that name.
            SecretsError: a place can't be asked.
        """
        for backend in (await self._open(protector), *self._others()):
            if (stored := await backend.read(name)) is not None:
                self._protect(stored, protector)
                return stored
        raise SecretMissing(name, audience=audience, variable=self._environment.variable_of(name))

    async def own_name(self, protector: Protector) -> str:
        """Where own secrets are kept."""
        return (await self._open(protector)).name

    async def read_own(self, name: str, protector: Protector) -> StoredSecret | None:
        """The secret of the own store, or ``None``, whatever other sources have."""
        if (stored := await (await self._open(protector)).read(name)) is not None:
            self._protect(stored, protector)
        return stored

    async def change(self, name: str, step: Step, ctx: OpContext) -> tuple[StoredSecret | None, StoredSecret | None]:
        """Change a secret of the own store, whole or not at all. What was there, and what is there now.

        Which version was there is noted first; the secret says which effect stored it.

        Raises:
            SecretReadOnly: another source has it, and the own store does not.
            SecretsError: it can't be changed.
        """
        own = await self._open(ctx)
        there = await own.read(name)
        if there is None:
            for backend in self._others():
                if await backend.read(name) is not None:
                    raise SecretReadOnly(name, backend.name)
        await ctx.note({"version": None if there is None else there.version})
        seen: list[StoredSecret | None] = []

        def watched(before: StoredSecret | None) -> StoredSecret | None:
            after = step(before)
            after = after and evolve(after, effect=ctx.effect)
            seen[:] = [before, after]
            return after

        await own.change(name, watched)
        before, after = seen
        for stored in (before, after):
            if stored is not None:
                self._protect(stored, ctx)
        return before, after

    async def summaries(
        self, wanted: Callable[[str], bool], protector: Protector
    ) -> tuple[str, list[tuple[str, Summary]], dict[str, str]]:
        """Where own ones are kept; the ``wanted`` ones with their source, by name; what is wrong with other sources."""
        own = await self._open(protector)
        found = {one.name: (own.name, one) for one in await own.summaries(wanted)}
        problems = {}
        for backend in self._others():
            try:
                for one in await backend.summaries(wanted):
                    found.setdefault(one.name, (backend.name, one))
            except SidebandError as error:
                problems[backend.name] = error.message
        return own.name, [found[name] for name in sorted(found)], problems

    async def rekey(self, params: SecretRekeyParams, protector: Protector) -> Path | None:
        """Give the encrypted store a new key. The old key file, if it was left.

        Raises:
            SecretsRekeyRefused: secrets are kept where there is no key of ours.
        """
        own = await self._open(protector)
        blocking = own.blocking if isinstance(own, ThreadedBackend) else None
        if not isinstance(blocking, EncryptedBackend) or not isinstance(own, ThreadedBackend):
            raise SecretsRekeyRefused(
                f"secrets are kept in `{own.name}`, which has no key of sideband's",
                hint="only the encrypted file has one",
            )
        return await own.run(lambda: blocking.rekey(params.to, passphrase=params.passphrase, key_file=params.key_file))

    def _others(self) -> Iterator[Backend]:
        there: dict[str, Backend | None] = {"environment": self._environment, "vault": self._vault}
        for source in self.config.sources:
            if (backend := there[source]) is not None:
                yield backend

    async def _open(self, protector: Protector) -> Backend:
        if passphrase := os.environ.get(PASSPHRASE_VARIABLE):
            protector.protect(passphrase, PASSPHRASE_VARIABLE)
        async with self._opening:
            if self._own is None:
                self._own = await self._chosen()
            return self._own

    async def _chosen(self) -> Backend:
        if self.config.backend == "memory":
            return MemoryBackend()
        # a keyring is tried out, and may ask its user to unlock it
        return ThreadedBackend(await run_unattended(lambda: choose_backend(self.config, self.home)))

    async def _vault_token(self) -> str:
        address = self.config.vault.address or ""

        async def own(name: str) -> StoredSecret | None:
            return await (await self._open(self.protector)).read(name)

        token = await find_token(self.config.vault, address, own)
        self.protector.protect(token, "vault-token", origins=[address])
        return token

    def _protect(self, stored: StoredSecret, protector: Protector) -> None:
        for value in stored.values():
            protector.protect(value, stored.name, origins=stored.origins)


def secrets_of(ctx: OpContext) -> Secrets:
    """The state of the plugin, for an op."""
    secrets: Secrets = ctx.state
    return secrets
