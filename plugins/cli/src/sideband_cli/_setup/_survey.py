"""The models that can be used now: those of servers on this machine, and of services that have a key."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from .._host._opened import with_host
from ._services import Service

if TYPE_CHECKING:
    from sideband import Host

_SECONDS = 5.0
_NOT_FOR_TEXT = ("embed", "bge-", "rerank", "whisper", "tts", "moderation", "minilm")
_ABSENT = frozenset({"llm.provider", "op.unknown", "plugin.unknown"})


@frozen
class FoundService:
    """A service, with its models.

    Attributes:
        service: the service.
        models: the names of its models without the provider, the preferred ones first.
        problem: why its models are unknown; empty otherwise.
        hint: what to do about the problem.
        is_known: whether the provider is installed.
    """

    service: Service
    models: tuple[str, ...] = ()
    problem: str = ""
    hint: str = ""
    is_known: bool = True


@frozen
class FoundServices:
    """What was found.

    Attributes:
        services: each service by its provider.
        stored: the origins of each secret that is stored, by name.
    """

    services: Mapping[str, FoundService]
    stored: Mapping[str, tuple[str, ...]] = field(factory=dict)

    @property
    def local(self) -> list[FoundService]:
        """The servers on this machine that have models."""
        return [one for one in self.services.values() if one.service.is_local and one.models]


def counted(models: Sequence[str]) -> str:
    """Return how many models there are, in words."""
    return f"{len(models)} {'model' if len(models) == 1 else 'models'}"


def survey(arguments: Namespace, services: Iterable[Service], *, settings: Iterable[str] = ()) -> FoundServices:
    """Look for the models of services, concurrently and for a few seconds at most.

    Args:
        arguments: the options of the host.
        services: the services.
        settings: more settings, as in ``--set``.
    """
    import anyio

    wanted = list(services)
    options = Namespace(**{**vars(arguments), "set": [*arguments.set, *settings]})

    async def look(host: Host) -> FoundServices:
        found: dict[str, FoundService] = {}

        async def ask(service: Service) -> None:
            found[service.provider] = FoundService(service, problem=f"no answer within {_SECONDS:g} seconds")
            with anyio.move_on_after(_SECONDS):
                found[service.provider] = await _asked(host, service)

        async with anyio.create_task_group() as tasks:
            for service in wanted:
                tasks.start_soon(ask, service)
        return FoundServices({one.provider: found[one.provider] for one in wanted}, await _stored(host))

    return with_host(options, look)


async def _asked(host: Host, service: Service) -> FoundService:
    from sideband import SidebandError

    try:
        listed: Mapping[str, Any] = await host.op("llm.models", {"provider": service.provider})
    except SidebandError as error:
        return FoundService(service, problem=error.message, hint=error.hint, is_known=error.code not in _ABSENT)
    if listed["problems"]:
        problem = listed["problems"][0]
        return FoundService(service, problem=problem["message"], hint=problem["hint"])
    names = [one["name"].partition(":")[2] for one in listed["models"] if one["tools"] is not False]
    useful = [name for name in names if not any(word in name.lower() for word in _NOT_FOR_TEXT)]
    first = [name for name in service.preferred if name in useful]
    return FoundService(service, (*first, *(name for name in useful if name not in first)))


async def _stored(host: Host) -> Mapping[str, tuple[str, ...]]:
    from sideband import SidebandError

    try:
        return {one["name"]: tuple(one["origins"]) for one in (await host.op("secrets.list", {}))["items"]}
    except SidebandError:
        return {}  # a key can be in an environment variable
