"""The configuration table ``[plugins.http]``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ._addresses._url import parse_url
from ._transport._choice import TransportName
from ._transport._proxies import Bypass, ProxyRules, proxy_from
from ._transport._trust import ClientCertificate
from ._version import __version__


def _check_proxy(text: str) -> str:
    return proxy_from(text).origin


def _check_bypass(text: str) -> str:
    if not text.isascii() or text.lower() != text or any(one.isspace() for one in text):
        raise ValueError("expected a lower-case host, `*.example.org`, a network such as 10.0.0.0/8, or `*`")
    return text


def _check_origin(text: str) -> str:
    target = parse_url(text)
    if target.request_path != "/" or target.scheme != "https":
        raise ValueError("expected an origin such as https://host or https://host:port")
    return target.origin


ProxyUrl = Annotated[str, AfterValidator(_check_proxy)]
BypassText = Annotated[str, AfterValidator(_check_bypass)]
Origin = Annotated[str, AfterValidator(_check_origin)]


class _HttpTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProxyConfig(_HttpTable):
    """The table ``[plugins.http.proxy]``. A string in its place applies to both schemes."""

    http: ProxyUrl | None = Field(default=None, description="The proxy for http URLs. Unset: no proxy.")
    https: ProxyUrl | None = Field(default=None, description="The proxy for https URLs. Unset: no proxy.")

    @model_validator(mode="before")
    @classmethod
    def _for_both(cls, given: Any) -> Any:
        return {"http": given, "https": given} if isinstance(given, str) else given


class ClientCertificateConfig(_HttpTable):
    """A table ``[plugins.http.client_certificates."https://host"]``."""

    certificate: Path = Field(description="A PEM file with the certificate and its chain.")
    key: Path | None = Field(
        default=None,
        description="A PEM file with the key, readable by its owner only. Unset: the key is in `certificate`.",
    )
    password: str | None = Field(default=None, description="The name of the secret that decrypts the key.")


class Config(_HttpTable):
    """The table ``[plugins.http]``."""

    user_agent: str = Field(
        default=f"sideband/{__version__}",
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        description="The value of the `user-agent` header, unless the request sets it.",
    )
    ca_file: Path | None = Field(
        default=None, description="A PEM file of certificate authorities to trust in addition to the public ones."
    )
    client_certificates: dict[Origin, ClientCertificateConfig] = Field(
        default={}, description="Client certificates by origin. Each is sent only to its own origin."
    )
    proxy: ProxyConfig = Field(
        default=ProxyConfig(),
        description="The proxy for tunnels: http://host:port, or a table with one for each scheme.",
    )
    no_proxy: tuple[BypassText, ...] = Field(
        default=(), description="Hosts, `*.example.org`, networks (10.0.0.0/8) or `*` that bypass the proxy."
    )
    proxy_auth: str | None = Field(
        default=None, description="The name of the secret with the credential `user:password`, bound to the proxy."
    )
    proxy_resolves: bool = Field(
        default=False,
        description="Whether the proxy resolves names. Their addresses are then not checked: they count as public, "
        "wherever the proxy connects.",
    )
    max_connections: int = Field(
        default=256, ge=1, le=10_000, description="The maximum number of open connections, both shared and per session."
    )
    transport: TransportName = Field(
        default="auto",
        description="The HTTP library: `httpx`; `aiohttp`, which is faster, for HTTP/1.1 on asyncio; or `auto`: "
        "aiohttp if it is installed and HTTP/2 is not an option, else httpx. Proxies always use httpx.",
    )
    max_sessions: int = Field(default=64, ge=1, le=10_000, description="The maximum number of open sessions per skill.")

    @model_validator(mode="before")
    @classmethod
    def _no_password(cls, given: Any) -> Any:
        # Checked before field validation, because pydantic's messages about a field repeat its value.
        proxy = given.get("proxy") if isinstance(given, Mapping) else None
        urls = proxy.values() if isinstance(proxy, Mapping) else [proxy]
        if any("@" in url for url in urls if isinstance(url, str)):
            raise ValueError(
                "`proxy` must not contain a user; store `user:password` as a secret and name it in `proxy_auth`"
            )
        return given

    def proxy_rules(self) -> ProxyRules:
        """Return the rules that select a proxy."""
        given = {"http": self.proxy.http, "https": self.proxy.https}
        proxies = {scheme: proxy_from(url) for scheme, url in given.items() if url is not None}
        return ProxyRules(proxies, tuple(map(Bypass, self.no_proxy)), self.proxy_resolves)

    def certificates(self) -> dict[str, ClientCertificate]:
        """Return the client certificates by origin."""
        return {
            origin: ClientCertificate(one.certificate, one.key, one.password)
            for origin, one in self.client_certificates.items()
        }
