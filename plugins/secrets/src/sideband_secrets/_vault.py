"""The state of the plugin: the backend of one host, opened at first use, with its blocking work in threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread
from attrs import define, field
from sideband.ops import OpContext

from ._backends import Backend, Stored, Summary
from ._choice import PASSPHRASE_VARIABLE, choose_backend, remember
from ._config import Config
from ._errors import SecretMissing

__all__ = ["Vault"]

T = TypeVar("T")

# a keyring that waits for a person must not take threads from others
_THREADS = 4


@define
class Vault:
    """Secrets of one host. Whatever comes out of it is known to the redactor before anybody sees it."""

    config: Config
    home: Path
    _backend: Backend | None = field(init=False, default=None)
    _opening: anyio.Lock = field(init=False, factory=anyio.Lock)
    _limiter: anyio.CapacityLimiter = field(init=False, factory=lambda: anyio.CapacityLimiter(_THREADS))

    async def read(self, name: str, ctx: OpContext, *, audience: str | None = None) -> Stored:
        """The secret.

        Raises:
            SecretMissing: there is none of that name.
            SecretsError: the backend can't be used.
        """
        backend = await self._open(ctx)
        stored = await self._run(lambda: backend.read(name), asks=backend.asks)
        if stored is None:
            raise SecretMissing(name, audience=audience)
        ctx.protect(stored.value, name)
        return stored

    async def write(self, stored: Stored, ctx: OpContext) -> None:
        """Store it, in the place of one of the same name."""
        ctx.protect(stored.value, stored.name)
        backend = await self._open(ctx)

        def write() -> None:
            remember(self.config, self.home, backend)
            backend.write(stored)

        await self._run(write, asks=backend.asks)

    async def delete(self, name: str, ctx: OpContext) -> None:
        """Remove it.

        Raises:
            SecretMissing: there is none of that name.
        """
        backend = await self._open(ctx)
        if not await self._run(lambda: backend.delete(name), asks=backend.asks):
            raise SecretMissing(name)

    async def summaries(self, ctx: OpContext) -> tuple[str, tuple[Summary, ...]]:
        """The name of the backend, and all secrets without values."""
        backend = await self._open(ctx)
        return backend.name, await self._run(backend.summaries, asks=backend.asks)

    async def _open(self, ctx: OpContext) -> Backend:
        if passphrase := os.environ.get(PASSPHRASE_VARIABLE):
            ctx.protect(passphrase, PASSPHRASE_VARIABLE)
        async with self._opening:
            if self._backend is None:
                # a keyring is tried out, and may ask its user to unlock it
                self._backend = await self._run(lambda: choose_backend(self.config, self.home), asks=True)
            return self._backend

    async def _run(self, work: Callable[[], T], *, asks: bool) -> T:
        # what asks a person is given up on cancellation: its thread ends when the person, or the keyring, answers
        return await to_thread.run_sync(work, abandon_on_cancel=asks, limiter=self._limiter)
