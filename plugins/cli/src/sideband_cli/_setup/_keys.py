"""Store the key of a service, and check it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from sideband import UsageError

from .._errors import KeyRefused
from .._host._opened import with_host
from ._survey import FoundService, survey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sideband import Host

    from ._services import Service

_MAX_CHARACTERS = 10_000


def store_key(
    arguments: Namespace, service: Service, value: str, *, settings: Iterable[str] = (), untried: bool = True
) -> FoundService:
    """Store the key of a service as a secret that is sent to its origin only, and list its models with it.

    If the service refuses the key, the stored key is as before.

    Args:
        arguments: the options of the host.
        service: the service.
        value: the key.
        settings: more settings, as in ``--set``.
        untried: whether to keep a key that could not be tried, such as one of a service that does not answer.

    Raises:
        KeyRefused: if the service refuses the key, or if it cannot be one.
        UsageError: if the secret of this name is a key for another origin.
    """
    if not (value.isascii() and value.isprintable()) or " " in value or len(value) > _MAX_CHARACTERS:
        raise KeyRefused(service.title, "it contains characters that no key has")
    given = list(settings)
    stored = survey(arguments, ()).stored
    had_one = service.origin in stored.get(service.secret, ())
    if service.secret in stored and not had_one:
        # It could not be restored if the service refuses the new key.
        raise UsageError(
            f"the secret `{service.secret}` is a key for {', '.join(stored[service.secret]) or 'no origin'}, "
            f"not for {service.origin}",
            hint=f"delete it first: sideband secrets delete {service.secret}",
        )
    op = "secrets.rotate" if had_one else "secrets.set"
    params = {"name": service.secret, "value": value} | ({} if had_one else {"origins": [service.origin]})
    with_host(arguments, lambda host: host.op(op, params))
    found = survey(arguments, [service], settings=given).services[service.provider]
    if is_refusal(found) or not (untried or found.models):
        undo = "secrets.rollback" if had_one else "secrets.delete"
        with_host(arguments, lambda host: _undo(host, undo, service.secret))
        if is_refusal(found):
            raise KeyRefused(service.title, found.problem)
    return found


async def _undo(host: Host, op: str, name: str) -> None:
    await host.op(op, {"name": name})


def is_refusal(found: FoundService) -> bool:
    """Return whether a service wants a key, or another one."""
    return any(status in found.problem for status in ("HTTP 401", "HTTP 403"))
