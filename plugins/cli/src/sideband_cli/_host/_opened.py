"""Do one thing with an open host."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, TypeVar

from sideband.command_line import make_host, run_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sideband import Host

T = TypeVar("T")


def with_host(arguments: Namespace, do: Callable[[Host], Awaitable[T]]) -> T:
    """Open a host for a command, and return what a function returns with it."""

    async def main() -> T:
        async with make_host(arguments) as host:
            return await do(host)

    return run_async(main)
