"""The services whose models can be used, and the keys that they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from attrs import evolve, frozen
from sideband import UsageError
from sideband.suggestions import did_you_mean

_OPENAI = "openai"


@frozen
class Service:
    """A provider of models.

    Attributes:
        provider: its name, as in `provider:model`.
        title: its name for people.
        is_local: whether it is a server on this machine, which needs no key.
        origin: the origin that its key is sent to.
        secret: the name of the secret that holds its key.
        variables: the environment variables that may hold its key.
        preferred: the models to offer first.
    """

    provider: str
    title: str
    is_local: bool = False
    origin: str = ""
    secret: str = ""
    variables: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable that holds a key now; empty if none does."""
        return next((name for name in self.variables if os.environ.get(name)), "")


LOCAL = (
    Service("openai-ollama", "Ollama", is_local=True),
    Service("openai-lmstudio", "LM Studio", is_local=True),
    Service("openai-vllm", "vLLM", is_local=True),
    Service("openai-llamacpp", "llama.cpp", is_local=True),
)
"""The servers that may run on this machine, on their default ports."""

HOSTED = (
    Service(
        "anthropic",
        "Anthropic",
        origin="https://api.anthropic.com",
        secret="anthropic",  # noqa: S106  a name
        variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        preferred=("claude-sonnet-4-5",),
    ),
    Service(
        _OPENAI,
        "OpenAI",
        origin="https://api.openai.com",
        secret=_OPENAI,
        variables=("OPENAI_API_KEY",),
        preferred=("gpt-5.1", "gpt-5", "gpt-5-mini"),
    ),
)
"""The services that are known without configuration."""


def services_of(plugins: Mapping[str, Mapping[str, Any]]) -> list[Service]:
    """Return all services, with what the settings say about them: those on this machine first.

    Args:
        plugins: the tables of the plugins.
    """
    found = {one.provider: one for one in LOCAL}
    found |= {one.provider: _configured(one, plugins.get(one.provider, {})) for one in HOSTED}
    tables = plugins.get(_OPENAI, {}).get("services", {})
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        provider = f"{_OPENAI}-{name}"
        known = found.get(provider, Service(provider, provider))
        found[provider] = _configured(evolve(known, secret=provider), table)
    return sorted(found.values(), key=lambda one: not one.is_local)


def service_named(provider: str, plugins: Mapping[str, Mapping[str, Any]]) -> Service:
    """Return the service of a provider.

    Raises:
        UsageError: if it is unknown, or needs no key.
    """
    known = {one.provider: one for one in services_of(plugins)}
    if provider in known and known[provider].secret:
        return known[provider]
    if provider in known:
        raise UsageError(f"`{provider}` is a server on this machine, which gets no key", hint="use it without a key")
    raise UsageError(
        f"unknown provider `{provider}`{did_you_mean(provider, known)}",
        hint=f"use one of {', '.join(known)}; a key of another plugin is a secret: "
        f"`sideband secrets set {provider} --origin https://…`",
    )


def _configured(service: Service, table: Any) -> Service:
    base_url, key = (table.get(name) if isinstance(table, Mapping) else None for name in ("base_url", "key"))
    origin = origin_of(str(base_url)) if base_url else service.origin
    return evolve(
        service,
        is_local=is_local(origin),
        origin=origin,
        secret=str(key or service.secret),
        # Its variables belong to the known address.
        variables=service.variables if origin == service.origin else (),
    )


def is_local(address: str) -> bool:
    """Return whether an address is one of this machine."""
    return _split(address).hostname in ("127.0.0.1", "localhost", "::1")


def origin_of(address: str) -> str:
    """Return the origin of an address.

    Example:
        >>> origin_of("https://openrouter.ai/api/v1")
        'https://openrouter.ai'
    """
    parts = _split(address)
    return f"{parts.scheme}://{parts.netloc}"


def address_problem(address: str) -> str:
    """Return why a service cannot have an address; an empty text if it can.

    Example:
        >>> address_problem("https://openrouter.ai/api/v1"), address_problem("http://ada:secret@127.0.0.1/v1")
        ('', 'an address has no user name, query or fragment')
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port out of range
        usable = False
    if not usable or not address.isprintable() or " " in address:
        return "that is not an address; it begins with https:// or http://"
    extra = parts.username is not None or "?" in address or "#" in address
    return "an address has no user name, query or fragment" if extra else ""


def _split(address: str) -> SplitResult:
    """Return the parts of an address. Those of an invalid one, which its plugin reports, are empty."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
