"""Serve as the command line says."""

from __future__ import annotations

import socket
from argparse import Namespace
from collections.abc import Sequence
from secrets import token_urlsafe

from sideband.approvals import Approval, ApprovalRequest
from sideband.command_line import make_host, notice
from sideband.errors import UsageError
from sideband_serving import ClaimedStreams

from ._client_session import Limits
from ._client_sessions import ClientSessions
from ._offer import Offer
from ._server import make_server
from ._streams import serve_streams

_NAME = "the token of `sideband mcp serve`"


async def serve(arguments: Namespace, streams: ClaimedStreams | None) -> None:
    """Serve until the client leaves; at an address, until this is cancelled.

    Args:
        arguments: the command line.
        streams: the streams of the client; ``None`` to serve at an address.
    """
    limits = Limits()
    made = make_host(
        arguments,
        skill_dirs=arguments.skill_dir,
        grants=_by_skill(arguments.grant),
        approver=_allow if arguments.yes else None,
    )
    async with made as host:
        offer = await Offer.of(host, _all(arguments.tools), _all(arguments.skills))
        await host.tools.view()
        lasting = streams is not None
        async with ClientSessions.opened(host, offer, limits, lasting=lasting, yes=arguments.yes) as sessions:
            if streams is not None:
                await serve_streams(make_server(sessions), streams, largest=limits.body)
            else:
                await _serve_address(arguments, sessions)


async def _serve_address(arguments: Namespace, sessions: ClientSessions) -> None:
    """Listen, show what clients need, and serve them."""
    from ._address import Address, serve_address  # noqa: PLC0415  slow, and not needed for a client with streams

    host = sessions.host
    with _listening(*arguments.listen) as listening:
        address = Address(listening, token_urlsafe(32), arguments.allow_host, arguments.allow_origin)
        if arguments.token is None:
            host.context_for("mcp").protect(address.token, _NAME)
            what = f"Authorization: Bearer {address.token}"
        else:
            credential = await host.context_for("mcp").credential(arguments.token, address.origin)
            address = Address(listening, credential.value, arguments.allow_host, arguments.allow_origin)
            what = f"the value of the secret `{arguments.token}`, as a bearer token"
        notice(f"serving {address.url}\nclients send: {what}")
        await serve_address(make_server(sessions), sessions, address)


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise UsageError(
            f"--listen: cannot listen at {host}:{port}: {error.strerror}", hint="choose another port, or 0"
        ) from None


def _all(lists: Sequence[Sequence[str]] | None) -> list[str] | None:
    return None if lists is None else [name for names in lists for name in names]


def _by_skill(grants: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, capability in grants:
        found.setdefault(name, []).append(capability)
    return found


async def _allow(request: ApprovalRequest) -> Approval:
    notice(f"allowed by --yes: {request.subject}: {request.question}")
    return Approval("allow", by="the user (--yes)")
