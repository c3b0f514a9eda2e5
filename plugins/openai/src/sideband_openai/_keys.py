"""Finds address and key of a service. A key is sent only to the origin that it belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sideband import SidebandError
from sideband.plugins import PluginContext
from sideband.providers import ProviderUnconfigured

from ._access import Access
from ._address import OFFICIAL, Address
from ._config import Service
from ._errors import unusable_address
from ._version import __version__

__all__ = ["ADDRESS_VARIABLE", "KEY_VARIABLE", "find_access"]

ADDRESS_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
# Neither says more than that there is no such secret.
_ABSENT = frozenset({"secrets.missing", "plugin.unknown"})


async def find_access(
    provider: str, service: Service, ctx: PluginContext, *, environment: bool, keyless: bool = False
) -> Access:
    """The way to a service.

    Args:
        provider: the name under which it is a provider.
        service: its configuration.
        ctx: the plugin's.
        environment: whether the usual variables are meant for it.
        keyless: whether it gets no key, whatever there is.

    Raises:
        ProviderUnconfigured: it needs a key and has none, or its address can't be used.
    """
    address = _address(provider, service, environment=environment)
    key: Mapping[str, str] = {}
    source = ""
    if not keyless:
        key, source = await _key(provider, service, address, ctx, environment=environment)
    return Access(
        provider=provider,
        address=address,
        headers={"user-agent": f"sideband-openai/{__version__}", **service.headers, **key},
        secrets=tuple({part for value in key.values() for part in (value, value.removeprefix("Bearer "))}),
        key_source=source,
    )


def _address(provider: str, service: Service, *, environment: bool) -> Address:
    if service.base_url is not None:
        return Address.parse(service.base_url)
    variable = os.environ.get(ADDRESS_VARIABLE, "") if environment else ""
    try:
        return Address.parse(variable or OFFICIAL)
    except ValueError as error:
        raise unusable_address(provider, ADDRESS_VARIABLE, str(error)) from None


async def _key(
    provider: str, service: Service, address: Address, ctx: PluginContext, *, environment: bool
) -> tuple[Mapping[str, str], str]:
    handle = service.key or provider
    stored = f"`sideband secrets set {handle} --origin {address.origin}`"
    try:
        credential = await ctx.credential(handle, address.origin)
    except SidebandError as error:
        problem = error
    else:
        headers = {name.lower(): value for name, value in credential.headers.items()}
        return headers or _header(provider, service, credential.value, f"the secret `{handle}`"), stored
    of_environment = environment and service.key is None
    value = os.environ.get(KEY_VARIABLE, "").strip() if of_environment else ""
    if value and address.origin == _origin_of_the_environment(provider):
        ctx.protect(value, "openai")
        return _header(provider, service, value, f"`{KEY_VARIABLE}`"), f"it is that of the variable {KEY_VARIABLE}"
    if address.is_loopback and service.key is None:
        return {}, stored
    raise _missing(provider, address, stored, problem, variable=of_environment)


def _origin_of_the_environment(provider: str) -> str:
    try:
        return Address.parse(os.environ.get(ADDRESS_VARIABLE, "") or OFFICIAL).origin
    except ValueError as error:
        raise unusable_address(provider, ADDRESS_VARIABLE, str(error)) from None


def _header(provider: str, service: Service, value: str, source: str) -> dict[str, str]:
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        raise ProviderUnconfigured(provider, f"{source} can't be sent as a key", hint="a key is one line of ASCII")
    return {"api-key": value} if service.api_version else {"authorization": f"Bearer {value}"}


def _missing(
    provider: str, address: Address, stored: str, problem: SidebandError, *, variable: bool
) -> ProviderUnconfigured:
    told = "" if problem.code in _ABSENT else f" ({problem.message})"
    ways = [stored]
    if variable:
        ways.append(f"set {KEY_VARIABLE}")
    if address.is_official:
        ways.append("use a server on this machine, such as openai-ollama:MODEL")
    return ProviderUnconfigured(
        provider, f"there is no key for {address.origin}{told}", hint=", or ".join(ways), cause=type(problem).__name__
    )
