"""Store the key of a service, and check it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from .._errors import KeyRefused
from .._host._opened import with_host
from ._survey import FoundService, survey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sideband import Host

    from ._services import Service

_MAX_CHARACTERS = 10_000


def store_key(arguments: Namespace, service: Service, value: str, *, settings: Iterable[str] = ()) -> FoundService:
    """Store the key of a service as a secret that is sent to its origin only, and list its models with it.

    If the service refuses the key, the stored key is as before.

    Args:
        arguments: the options of the host.
        service: the service.
        value: the key.
        settings: more settings, as in ``--set``.

    Raises:
        KeyRefused: if the service refuses the key, or if it cannot be one.
    """
    if not value.isprintable() or " " in value or len(value) > _MAX_CHARACTERS:
        raise KeyRefused(service.title, "it contains characters that no key has")
    given = list(settings)
    # Only a key for the same origin can be replaced in a way that keeps the old one.
    had_one = service.origin in survey(arguments, ()).stored.get(service.secret, ())
    op = "secrets.rotate" if had_one else "secrets.set"
    params = {"name": service.secret, "value": value} | ({} if had_one else {"origins": [service.origin]})
    with_host(arguments, lambda host: host.op(op, params))
    found = survey(arguments, [service], settings=given).services[service.provider]
    if found.problem and _is_refusal(found):
        undo = "secrets.rollback" if had_one else "secrets.delete"
        with_host(arguments, lambda host: _undo(host, undo, service.secret))
        raise KeyRefused(service.title, found.problem)
    return found


async def _undo(host: Host, op: str, name: str) -> None:
    await host.op(op, {"name": name})


def _is_refusal(found: FoundService) -> bool:
    return any(status in found.problem for status in ("HTTP 401", "HTTP 403"))
