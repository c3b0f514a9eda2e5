"""What can be configured."""

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
        raise ValueError("write a host in lower case, `*.example.org`, a network as 10.0.0.0/8, or `*`")
    return text


def _check_origin(text: str) -> str:
    target = parse_url(text)
    if target.request_path != "/" or target.scheme != "https":
        raise ValueError("write an origin as https://host or https://host:port")
    return target.origin


ProxyUrl = Annotated[str, AfterValidator(_check_proxy)]
BypassText = Annotated[str, AfterValidator(_check_bypass)]
Origin = Annotated[str, AfterValidator(_check_origin)]


class _HttpTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProxyConfig(_HttpTable):
    """The table ``[plugins.http.proxy]``; a text instead of it is for both."""

    http: ProxyUrl | None = Field(default=None, description="For http URLs; left out: none.")
    https: ProxyUrl | None = Field(default=None, description="For https URLs; left out: none.")

    @model_validator(mode="before")
    @classmethod
    def _for_both(cls, given: Any) -> Any:
        return {"http": given, "https": given} if isinstance(given, str) else given


class ClientCertificateConfig(_HttpTable):
    """A table ``[plugins.http.client_certificates."https://host"]``."""

    certificate: Path = Field(description="A file in PEM form: the certificate, and those that lead to an authority.")
    key: Path | None = Field(
        default=None, description="A file in PEM form that only its owner can read; left out: `certificate` has it."
    )
    password: str | None = Field(default=None, description="The secret that the key is encrypted with, by its name.")


class Config(_HttpTable):
    """The table ``[plugins.http]``."""

    user_agent: str = Field(
        default=f"sideband/{__version__}",
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        description="What requests call themselves unless they set `user-agent`.",
    )
    ca_file: Path | None = Field(
        default=None, description="Certificate authorities in PEM form that are trusted besides the public ones."
    )
    client_certificates: dict[Origin, ClientCertificateConfig] = Field(
        default={}, description="Who the host is to servers that ask, by their origin. Shown to nobody else."
    )
    proxy: ProxyConfig = Field(
        default=ProxyConfig(), description="Where tunnels are asked for: http://host:port, or one for each scheme."
    )
    no_proxy: tuple[BypassText, ...] = Field(
        default=(), description="Hosts, `*.example.org`, networks (10.0.0.0/8) or `*` that need no proxy."
    )
    proxy_auth: str | None = Field(
        default=None, description="The proxy's credential, by its name: a secret `user:password`, bound to the proxy."
    )
    proxy_resolves: bool = Field(
        default=False,
        description="Whether the proxy is given names. What they stand for is then not checked here: they count as "
        "public, wherever the proxy connects to.",
    )
    max_connections: int = Field(
        default=100, ge=1, le=10_000, description="Connections open at once, shared and in each session."
    )
    transport: TransportName = Field(
        default="auto",
        description="What carries requests: `httpx`; `aiohttp`, which is faster, for HTTP/1.1 on asyncio; or `auto`: "
        "aiohttp where it is installed and HTTP/2 can't be agreed on, else httpx. Proxies are for httpx in any case.",
    )
    max_sessions: int = Field(default=64, ge=1, le=10_000, description="Sessions that a skill may have open at once.")

    @model_validator(mode="before")
    @classmethod
    def _no_password(cls, given: Any) -> Any:
        # Here, and not where the URL is read: the message about a field repeats its value.
        proxy = given.get("proxy") if isinstance(given, Mapping) else None
        urls = proxy.values() if isinstance(proxy, Mapping) else [proxy]
        if any("@" in url for url in urls if isinstance(url, str)):
            raise ValueError("`proxy` holds a user; store `user:password` as a secret, and name it in `proxy_auth`")
        return given

    def proxy_rules(self) -> ProxyRules:
        """Which proxy a request takes."""
        given = {"http": self.proxy.http, "https": self.proxy.https}
        proxies = {scheme: proxy_from(url) for scheme, url in given.items() if url is not None}
        return ProxyRules(proxies, tuple(map(Bypass, self.no_proxy)), self.proxy_resolves)

    def certificates(self) -> dict[str, ClientCertificate]:
        """What is shown to whom."""
        return {
            origin: ClientCertificate(one.certificate, one.key, one.password)
            for origin, one in self.client_certificates.items()
        }
