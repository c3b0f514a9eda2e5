"""Where the service is, and the key for it. A key goes to the origin that it belongs to, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import field, frozen
from sideband import SidebandError
from sideband.plugins import PluginContext

from ._address import OFFICIAL, Address
from ._config import Config
from ._errors import address_unusable, key_missing, key_unusable

__all__ = ["Access", "find_access"]

# The store has no key for this address, or there is no store that this plugin may use.
_NO_KEY_STORED = frozenset({"secrets.missing", "secrets.audience", "plugin.unknown", "plugin.denied", "op.denied"})
_BASE_URL = "ANTHROPIC_BASE_URL"
_KEYS = {"ANTHROPIC_API_KEY": "x-api-key", "ANTHROPIC_AUTH_TOKEN": "authorization"}


@frozen
class Access:
    """An address, and the headers that open it."""

    address: Address
    headers: Mapping[str, str] = field(repr=False)


async def find_access(provider: str, ctx: PluginContext) -> Access:
    """Where requests go, and with which key.

    The address is that of the configuration, else of the environment, else the official one. The key is the secret
    that the configuration names, else the one called like the provider, else that of the environment, which belongs
    to the environment's address. An address on this machine needs none.

    Raises:
        ProviderUnconfigured: there is no key for the address, or it can't be used.
    """
    config: Config = ctx.config
    usual = _usual_address(provider)
    address = usual if config.base_url is None else Address.parse(config.base_url)
    problem: SidebandError | None = None
    try:
        return Access(address, await _stored(provider, config.key or provider, address, ctx))
    except SidebandError as error:
        if config.key is not None:
            raise key_unusable(provider, f"`{config.key}`", error.message, error.hint) from error
        problem = error
    found = _environment(provider, ctx)
    if found is not None and usual.origin == address.origin:
        return Access(address, found)
    if address.is_loopback:
        return Access(address, {})
    if problem.code not in _NO_KEY_STORED:
        raise key_unusable(provider, f"`{provider}`", problem.message, problem.hint) from problem
    raise key_missing(provider, address.origin, elsewhere="" if found is None else usual.origin)


def _usual_address(provider: str) -> Address:
    text = os.environ.get(_BASE_URL, "").strip() or OFFICIAL
    try:
        return Address.parse(text)
    except ValueError as error:
        raise address_unusable(provider, _BASE_URL, error) from error


async def _stored(provider: str, handle: str, address: Address, ctx: PluginContext) -> Mapping[str, str]:
    credential = await ctx.credential(handle, address.origin)
    headers = credential.headers or {"x-api-key": _checked(provider, f"`{handle}`", credential.value)}
    return {name.lower(): value for name, value in headers.items()}


def _environment(provider: str, ctx: PluginContext) -> Mapping[str, str] | None:
    for variable, header in _KEYS.items():
        value = os.environ.get(variable, "").strip()
        if value:
            ctx.protect(value, variable)
            checked = _checked(provider, f"in {variable}", value)
            return {header: f"Bearer {checked}" if header == "authorization" else checked}
    return None


def _checked(provider: str, where: str, value: str) -> str:
    if not value.isascii() or not value.isprintable() or " " in value:
        raise key_unusable(provider, where, "it holds blanks or characters that no header takes")
    return value
