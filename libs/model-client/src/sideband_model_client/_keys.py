"""Finds the address of a service and the key for it. A key is sent only to the origin that it belongs to."""

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

# The store has no key for this address, or there is no store that this plugin may use.
_NOT_STORED = frozenset({"secrets.missing", "secrets.audience", "plugin.unknown", "plugin.denied", "op.denied"})
# Of these, the ones that say nothing else.
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
    """Find the way to a service.

    The address is ``base_url``, else that of the service's variable, else the official one. The key is the secret
    that ``key`` names, and no other one then; else the secret that is called like the provider; else that of one of
    the service's variables, if the variables' address is the one that is used. An address on this machine needs no key.

    Args:
        service: the kind of service.
        ctx: the context of the plugin.
        provider: the name of the provider.
        base_url: the configured address.
        key: the configured name of a secret.
        headers: the configured headers, and those that the protocol wants with each request.
        keyless: whether the service gets no key, even if there is one.

    Raises:
        ProviderUnconfigured: there is no key for the address, or the key or the address can't be used.

    Example:
        >>> async def access_of(ctx):
        ...     return await find_access(ACME, ctx, provider="acme", base_url=ctx.config.base_url, key=ctx.config.key)
    """
    if base_url is None:
        address = _usual_address(service, provider)
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
        headers=sent,
        secrets=found.secrets,
        key_hint=found.hint,
        plugin=ctx.plugin,
    )


@frozen
class _FoundKey:
    """A key, or that none is needed."""

    headers: Mapping[str, str] = field(factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    hint: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str], value: str, hint: str) -> _FoundKey:
        # A server may repeat a header, or only the token in it.
        secrets = {part for one in (value, *headers.values()) for part in (one, one.rpartition(" ")[2])}
        return cls(headers, tuple(sorted(secrets - {""}, key=lambda one: (-len(one), one))), hint)


@frozen
class _KeySearch:
    """Looks for the key for one address."""

    service: ModelService
    ctx: PluginContext
    provider: str
    address: ServiceAddress
    key: str | None
    is_configured: bool

    async def find(self) -> _FoundKey:
        """Return the key, or nothing for an address on this machine."""
        handle = self.key or self.provider
        try:
            credential = await self.ctx.credential(handle, self.address.origin)
        except SidebandError as error:
            if self.key is not None:
                hint = error.hint or self._ways()
                raise key_unusable(self.provider, f"`{handle}`", error.message, hint, type(error).__name__) from error
            return self._without_secret(error)
        headers = _lowered(credential.headers)
        if not headers:
            headers = self.service.key_form.headers(self._checked(f"`{handle}`", credential.value))
        return _FoundKey.of(headers, credential.value, f"check the key: {self._stored()} replaces it")

    def _without_secret(self, problem: SidebandError) -> _FoundKey:
        variable, value, form = self._variable()
        elsewhere = ""
        if variable:
            self.ctx.protect(value, variable)
            elsewhere = _usual_address(self.service, self.provider).origin
            if elsewhere == self.address.origin:
                headers = form.headers(self._checked(f"in {variable}", value))
                return _FoundKey.of(headers, value, f"check the key: it is that of the variable {variable}")
        if self.address.is_loopback:
            return _FoundKey(hint=self._ways())
        cause = type(problem).__name__
        if problem.code not in _NOT_STORED:
            hint = problem.hint or self._ways()
            raise key_unusable(self.provider, f"`{self.provider}`", problem.message, hint, cause) from problem
        reasons = [] if problem.code in _ABSENT else [problem.message]
        reasons += [f"the one in {variable} belongs to {elsewhere}"] if variable else []
        raise key_missing(self.provider, self.address.origin, reasons, self._ways(), cause) from problem

    def _variable(self) -> tuple[str, str, KeyForm]:
        """The first variable that holds a key: its name, its value, and the form in which it is sent."""
        for variable, form in self.service.key_variables.items():
            if value := os.environ.get(variable, "").strip():
                return variable, value, form
        return "", "", self.service.key_form

    def _checked(self, where: str, value: str) -> str:
        if not (value and value.isascii() and value.isprintable()) or " " in value:
            problem = "it is empty, or holds blanks or characters that no header takes"
            raise key_unusable(self.provider, where, problem, "a key is one word of printable ASCII")
        return value

    def _stored(self) -> str:
        return f"`sideband secrets set {self.key or self.provider} --origin {self.address.origin}`"

    def _ways(self) -> str:
        """How people can give a key."""
        official = self.address.origin == self.service.official_address.origin
        ways = [f"store a key: {self._stored()}"]
        variable = next(iter(self.service.key_variables), "")
        if variable and self.key is None:
            # A variable's key belongs to the variables' address, so the address has to be there too.
            both = self.is_configured and not official and self.service.address_variable
            ways.insert(0, f"set {variable}{f' and {self.service.address_variable}' if both else ''}")
        if official and self.service.without_key:
            ways.append(self.service.without_key)
        return ", or ".join(ways)


def _usual_address(service: ModelService, provider: str) -> ServiceAddress:
    """The address that the variables' keys belong to."""
    variable = service.address_variable
    text = os.environ.get(variable, "").strip() if variable else ""
    try:
        return service.parse_address(text or service.official)
    except ValueError as error:
        raise address_unusable(provider, variable, str(error), service.official) from error


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
