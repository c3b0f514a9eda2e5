"""The process of the demo service."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_urlsafe

import anyio
from anyio.abc import Process
from attrs import define, field
from sideband.plugins import PluginContext

from ._errors import ServiceFailed

CREDENTIAL = "sideband-demo"
_SERVICE = Path(__file__).with_name("_service.py")


@define(eq=False)
class DemoService:
    """The demo service of one host: started on first use, stopped with the host."""

    plugin: PluginContext
    _process: Process | None = None
    _url: str = ""
    _starting: anyio.Lock = field(factory=anyio.Lock)

    @classmethod
    @asynccontextmanager
    async def open(cls, plugin: PluginContext) -> AsyncIterator[DemoService]:
        """Yield a service that is not started yet, and stop it afterwards."""
        service = cls(plugin)
        try:
            yield service
        finally:
            await service.close()

    async def url(self) -> str:
        """Start the service if needed, store its token as a credential bound to its URL, and return the URL."""
        async with self._starting:
            if self._process is None:
                await self._start()
        return self._url

    async def close(self) -> None:
        """Stop the service."""
        if self._process is not None:
            with anyio.CancelScope(shield=True):
                await self._process.aclose()

    async def _start(self) -> None:
        token = token_urlsafe(24)
        program = [sys.executable, "-I", "-S", str(_SERVICE)]
        process = await anyio.open_process(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None)
        assert process.stdin is not None  # noqa: S101  both are pipes
        assert process.stdout is not None  # noqa: S101
        try:
            await process.stdin.send(f"{token}\n".encode())
            port = int(await process.stdout.receive())
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await process.aclose()
            if isinstance(error, (anyio.BrokenResourceError, anyio.EndOfStream, ValueError)):
                raise ServiceFailed(process.returncode) from error
            raise
        self._process = process
        self._url = f"http://127.0.0.1:{port}"
        credential = {"name": CREDENTIAL, "value": token, "origins": [self._url]}
        await self.plugin.dispatch("secrets.set", credential)
