"""The op that starts the demo's service, and the service while it runs."""

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
from sideband.ops import Level, OpContext, OpFailed, op
from sideband.plugins import PluginContext

from ._models import Service, ServiceParams

__all__ = ["DemoService", "service"]

_CREDENTIAL = "sideband-demo"
_SERVICE = Path(__file__).with_name("_service.py")


class ServiceFailed(OpFailed, ConnectionError):
    """The demo's service ended before it said where it is."""

    code = "demo.service"

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(
            f"the demo's service did not start (exit code {exit_code})",
            hint="see whether a process may listen on 127.0.0.1 here",
        )


@define(eq=False)
class DemoService:
    """The service of one host: started when it is first asked for, ended with the host."""

    plugin: PluginContext
    _process: Process | None = None
    _url: str = ""
    _starting: anyio.Lock = field(factory=anyio.Lock)

    @classmethod
    @asynccontextmanager
    async def open(cls, plugin: PluginContext) -> AsyncIterator[DemoService]:
        """Yield a service that is not started yet, and end it afterwards."""
        service = cls(plugin)
        try:
            yield service
        finally:
            await service.close()

    async def url(self) -> str:
        """The address of the service. Its token is stored as a credential that is bound to this address."""
        async with self._starting:
            if self._process is None:
                await self._start()
        return self._url

    async def close(self) -> None:
        """End the service."""
        if self._process is not None:
            with anyio.CancelScope(shield=True):
                await self._process.aclose()

    async def _start(self) -> None:
        token = token_urlsafe(24)
        command = [sys.executable, "-I", "-S", str(_SERVICE)]
        process = await anyio.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None)
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
        credential = {"name": _CREDENTIAL, "value": token, "origins": [self._url]}
        await self.plugin.dispatch("secrets.set", credential)


@op("demo.service", requires="demo", level=Level.MONITORED)
async def service(params: ServiceParams, ctx: OpContext) -> Service:  # noqa: ARG001  it takes none
    """Start a small HTTP service on loopback, unless it runs, and store a credential for it."""
    return Service(url=await ctx.state.url(), credential=_CREDENTIAL)
