"""The state of the plugin: the sources of the secrets of one host, and the order in which they are asked."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
from attrs import define, evolve, field
from sideband import SidebandError
from sideband.ops import OpContext

from ._backends import Backend, MemoryBackend, Step, StoredSecret, Summary
from ._choice import PASSPHRASE_VARIABLE, choose_backend, keyring_service, used_backend
from ._config import Config
from ._encrypted import EncryptedBackend
from ._environment import EnvironmentBackend
from ._errors import SecretMissing, SecretReadOnly, SecretsRekeyRefused
from ._keyring import read_unlocked
from ._models import SecretRekeyParams
from ._threads import ThreadedBackend, run_abandonable
from ._vault import VaultBackend, find_token
from ._vault_client import VaultClient

_LOAD_SECONDS = 5.0


class Protector(Protocol):
    """Registers values with the redactor: the context of an op, or of the plugin itself."""

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """See ``OpContext.protect``."""


@define
class Secrets:
    """The secrets of one host. Every value is registered with the redactor before it is returned.

    The local store is asked first, then the other sources in the configured order. The first one that has the name
    wins. A source that is unavailable ends the lookup, since a later source may have a different value.
    """

    config: Config
    home: Path
    protector: Protector = field(repr=False)
    _own: Backend | None = field(init=False, default=None)
    _opening: anyio.Lock = field(init=False, factory=anyio.Lock)
    _environment: EnvironmentBackend = field(init=False)
    _vault: VaultBackend | None = field(init=False, default=None)
    _closed: dict[str, str] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._environment = EnvironmentBackend(self.config.environment)
        if (address := self.config.vault.address) is not None:
            client = VaultClient(self.config.vault, address, self._vault_token)
            self._vault = VaultBackend(self.config.vault, client)

    @property
    def closed(self) -> str | None:
        """Why some values are not registered with the redactor, or ``None``."""
        return "; ".join(self._closed.values()) or None

    async def start(self) -> None:
        """Register the values of the environment with the redactor, whether or not they are used."""
        for stored in await self._environment.all(ask=False):
            self._protect(stored, self.protector)

    async def load(self) -> None:
        """Register all values with the redactor that are available without asking the user."""
        used = used_backend(self.config, self.home)
        if used == "keyring":
            service = keyring_service(self.config, self.home)
            await self._register(used, lambda: run_abandonable(lambda: read_unlocked(service)))
        elif used is not None:
            await self._register(used, partial(self._all_of_own, ask=False))
        if self._vault is not None:
            await self._register("vault", partial(self._vault.all, ask=False))

    async def _all_of_own(self, *, ask: bool) -> tuple[StoredSecret, ...]:
        return await (await self._open(self.protector)).all(ask=ask)

    async def _register(self, name: str, read_all: Callable[[], Awaitable[tuple[StoredSecret, ...]]]) -> None:
        self._closed[name] = f"the {name} secrets could not be read within {_LOAD_SECONDS:g} s"
        with anyio.move_on_after(_LOAD_SECONDS):
            try:
                for stored in await read_all():
                    self._protect(stored, self.protector)
            except SidebandError as error:
                self._closed[name] = error.message
            else:
                del self._closed[name]

    async def _was_opened(self, backend: Backend) -> None:
        """Register all values of a source that could not be opened before."""
        if backend.name in self._closed:
            await self._register(backend.name, partial(backend.all, ask=True))

    async def aclose(self) -> None:
        """Close all connections."""
        if self._vault is not None:
            await self._vault.client.aclose()

    async def read(self, name: str, protector: Protector, *, audience: str | None = None) -> StoredSecret:
        """Return a secret.

        Raises:
            SecretMissing: if the secret does not exist.
            SecretsError: if a source is unavailable.
        """
        for backend in (await self._open(protector), *self._others()):
            if (stored := await backend.read(name)) is not None:
                self._protect(stored, protector)
                await self._was_opened(backend)
                return stored
            await self._was_opened(backend)
        raise SecretMissing(name, audience=audience, variable=self._environment.variable_of(name))

    async def own_name(self, protector: Protector) -> str:
        """Return the name of the local store's backend."""
        return (await self._open(protector)).name

    async def read_own(self, name: str, protector: Protector) -> StoredSecret | None:
        """Return the secret of the local store, or ``None``, regardless of other sources."""
        own = await self._open(protector)
        if (stored := await own.read(name)) is not None:
            self._protect(stored, protector)
        await self._was_opened(own)
        return stored

    async def change(self, name: str, step: Step, ctx: OpContext) -> tuple[StoredSecret | None, StoredSecret | None]:
        """Change a secret of the local store atomically. Return the secret before and after the change.

        The current version is recorded first, and the stored secret contains the id of the effect.

        Raises:
            SecretReadOnly: if another source has the secret, and the local store does not.
            SecretsError: if it cannot be changed.
        """
        own = await self._open(ctx)
        current = await own.read(name)
        if current is None:
            for backend in self._others():
                if await backend.read(name) is not None:
                    raise SecretReadOnly(name, backend.name)
        await ctx.note({"version": None if current is None else current.version})
        versions: list[StoredSecret | None] = []

        def recording_step(before: StoredSecret | None) -> StoredSecret | None:
            after = step(before)
            after = after and evolve(after, effect=ctx.effect)
            versions[:] = [before, after]
            return after

        await own.change(name, recording_step)
        before, after = versions
        for stored in (before, after):
            if stored is not None:
                self._protect(stored, ctx)
        await self._was_opened(own)
        return before, after

    async def summaries(
        self, wanted: Callable[[str], bool], protector: Protector
    ) -> tuple[str, list[tuple[str, Summary]], dict[str, str]]:
        """Return the local store's name, the ``wanted`` secrets with their sources, and the errors of other sources."""
        own = await self._open(protector)
        found = {one.name: (own.name, one) for one in await own.summaries(wanted)}
        await self._was_opened(own)
        problems = {}
        for backend in self._others():
            try:
                for one in await backend.summaries(wanted):
                    found.setdefault(one.name, (backend.name, one))
            except SidebandError as error:
                problems[backend.name] = error.message
        return own.name, [found[name] for name in sorted(found)], problems

    async def rekey(self, params: SecretRekeyParams, protector: Protector) -> Path | None:
        """Re-encrypt the encrypted store with a new key. Return the old key file if it was kept.

        Raises:
            SecretsRekeyRefused: if the local store is not the encrypted one.
        """
        own = await self._open(protector)
        blocking = own.blocking if isinstance(own, ThreadedBackend) else None
        if not isinstance(blocking, EncryptedBackend) or not isinstance(own, ThreadedBackend):
            raise SecretsRekeyRefused(
                f"secrets are kept in `{own.name}`, which has no key to replace",
                hint='set `backend = "encrypted"` to use a key',
            )
        return await own.run(lambda: blocking.rekey(params.to, passphrase=params.passphrase, key_file=params.key_file))

    def _others(self) -> Iterator[Backend]:
        backends: dict[str, Backend | None] = {"environment": self._environment, "vault": self._vault}
        for source in self.config.sources:
            if (backend := backends[source]) is not None:
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
        # a keyring is probed, and may prompt the user to unlock it
        return ThreadedBackend(await run_abandonable(lambda: choose_backend(self.config, self.home)))

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
    """Return the state of the plugin from an op's context."""
    secrets: Secrets = ctx.state
    return secrets
