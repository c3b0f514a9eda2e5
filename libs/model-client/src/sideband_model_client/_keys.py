"""Look up the address and key of a service. A key is sent only to the origin it belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import field, frozen
from sideband import SidebandError
from sideband.plugins import PluginContext

from ._access import ServiceAccess
from ._address import ServiceAddress
from ._errors import address_unusable, key_missing, key_unusable
from ._service import KeyForm, ModelService

# The store has no key for this address, or the plugin has no access to a store.
_NOT_STORED = frozenset({"secrets.missing", "secrets.audience", "plugin.unknown", "plugin.denied", "op.denied"})
# The subset whose messages add nothing to "no key".
_ABSENT = frozenset({"secrets.missing", "plugin.unknown"})


async def find_access(
    service: ModelService,
    ctx: PluginContext,
    *,
    provider: str,
    base_url: str | None = None,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    keyless: bool = False,
) -> ServiceAccess:
    """Find the address and the key of a service.

    The address is ``base_url``, else the value of the service's address variable, else the official address. If
    ``key`` is set, only the secret of that name is used. Otherwise the key is the secret named after the provider, or
    else the value of one of the service's key variables, provided the address in use is the one those variables
    belong to. A loopback address needs no key.

    Args:
        service: the kind of service.
        ctx: the context of the plugin.
        provider: the name of the provider.
        base_url: the configured address.
        key: the configured name of a secret.
        headers: the configured headers and those that the protocol requires.
        keyless: whether to send no key, even if one is stored.

    Raises:
        ProviderUnconfigured: if no key is found for the address, or the key or the address is invalid.

    Example:
        >>> async def access_of(ctx):
        ...     return await find_access(ACME, ctx, provider="acme", base_url=ctx.config.base_url, key=ctx.config.key)
    """
    if base_url is None:
        address = _default_address(service, provider)
    else:
        try:
            address = service.parse_address(base_url)
        except ValueError as error:
            raise address_unusable(provider, "base_url", str(error), service.official) from error
    search = _KeySearch(service, ctx, provider, address, key, is_configured=base_url is not None)
    found = _FoundKey() if keyless else await search.find()
    sent = {"user-agent": service.user_agent, **_lowered(headers or {}), **found.headers}
    return ServiceAccess(
        provider=provider,
        service=service,
        address=address,
        check_egress=ctx.check_egress,
        headers=sent,
        secrets=found.secrets,
        key_hint=found.hint,
        plugin=ctx.plugin,
    )


@frozen
class _FoundKey:
    """The headers and secrets of a key; empty if the service needs no key."""

    headers: Mapping[str, str] = field(factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    hint: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str], value: str, hint: str) -> _FoundKey:
        # A server may echo the whole header or only the token in it.
        secrets = {part for one in (value, *headers.values()) for part in (one, one.rpartition(" ")[2])}
        return cls(headers, tuple(sorted(secrets - {""}, key=lambda one: (-len(one), one))), hint)


@frozen
class _KeySearch:
    """The search for the key to one address."""

    service: ModelService
    ctx: PluginContext
    provider: str
    address: ServiceAddress
    key: str | None
    is_configured: bool

    async def find(self) -> _FoundKey:
        """Return the key. It may be empty for a loopback address."""
        handle = self.key or self.provider
        try:
            credential = await self.ctx.credential(handle, self.address.origin)
        except SidebandError as error:
            if self.key is not None:
                hint = error.hint or self._how_to_set_a_key()
                raise key_unusable(self.provider, f"`{handle}`", error.message, hint, type(error).__name__) from error
            return self._from_environment(error)
        headers = _lowered(credential.headers)
        if not headers:
            headers = self.service.key_form.headers(self._checked(f"`{handle}`", credential.value))
        return _FoundKey.of(headers, credential.value, f"check the key; replace it with {self._set_command()}")

    def _from_environment(self, problem: SidebandError) -> _FoundKey:
        variable, value, form = self._variable()
        elsewhere = ""
        if variable:
            self.ctx.protect(value, variable)
            elsewhere = _default_address(self.service, self.provider).origin
            if elsewhere == self.address.origin:
                headers = form.headers(self._checked(f"in {variable}", value))
                return _FoundKey.of(headers, value, f"check the key in the environment variable {variable}")
        if self.address.is_loopback:
            return _FoundKey(hint=self._how_to_set_a_key())
        cause = type(problem).__name__
        if problem.code not in _NOT_STORED:
            hint = problem.hint or self._how_to_set_a_key()
            raise key_unusable(self.provider, f"`{self.provider}`", problem.message, hint, cause) from problem
        reasons = [] if problem.code in _ABSENT else [problem.message]
        reasons += [f"the key in {variable} belongs to {elsewhere}"] if variable else []
        raise key_missing(self.provider, self.address.origin, reasons, self._how_to_set_a_key(), cause) from problem

    def _variable(self) -> tuple[str, str, KeyForm]:
        """Return the name, value and header form of the first key variable that is set."""
        for variable, form in self.service.key_variables.items():
            if value := os.environ.get(variable, "").strip():
                return variable, value, form
        return "", "", self.service.key_form

    def _checked(self, where: str, value: str) -> str:
        if not (value and value.isascii() and value.isprintable()) or " " in value:
            problem = "it is empty, or contains whitespace or characters not allowed in a header"
            raise key_unusable(self.provider, where, problem, "set a key of printable ASCII without whitespace")
        return value

    def _set_command(self) -> str:
        return f"`sideband secrets set {self.key or self.provider} --origin {self.address.origin}`"

    def _how_to_set_a_key(self) -> str:
        """Return a hint that lists the ways to set a key."""
        official = self.address.origin == self.service.official_address.origin
        ways = [f"store a key with {self._set_command()}"]
        variable = next(iter(self.service.key_variables), "")
        if variable and self.key is None:
            # A key variable belongs to the address in the address variable, so that must be set as well.
            both = self.is_configured and not official and self.service.address_variable
            ways.insert(0, f"set {variable}{f' and {self.service.address_variable}' if both else ''}")
        if official and self.service.without_key:
            ways.append(self.service.without_key)
        return ", or ".join(ways)


def _default_address(service: ModelService, provider: str) -> ServiceAddress:
    """Return the address that applies without configuration, to which the key variables belong."""
    variable = service.address_variable
    text = os.environ.get(variable, "").strip() if variable else ""
    try:
        return service.parse_address(text or service.official)
    except ValueError as error:
        raise address_unusable(provider, variable, str(error), service.official) from error


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
