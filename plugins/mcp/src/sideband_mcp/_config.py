"""The table `[plugins.mcp]`: the servers, and the limits of their connections."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from ._oauth._config import OAuthConfig

Variables = dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)], str]
Patterns = Annotated[tuple[str, ...], Field(max_length=1_000)]
Seconds = Annotated[FiniteFloat, Field(gt=0, le=86_400)]


_OF_PROGRAMS = frozenset({"folder", "read", "write", "network", "environment", "secrets"})
_OF_ADDRESSES = frozenset({"sse", "headers", "auth", "oauth", "local"})


class ServerConfig(BaseModel):
    """One server: a program that is started in isolation, or an address.

    Attributes:
        command: the program and its arguments, for a server that speaks over standard input and output.
        folder: its working directory, which must be in one of its places; a temporary folder by default.
        read, write: the folders and files that it may read, or change too.
        network: whether it may use the network.
        environment: further environment variables.
        secrets: the environment variables whose values are stored secrets, with the names of the secrets. Each must be
            bound to the origin ``op://mcp.NAME`` of the server.
        url: the address, for a server that speaks Streamable HTTP.
        sse: whether the address speaks the older protocol with server-sent events.
        headers: further headers of each request.
        auth: the name of the secret that is sent to it, bound to its origin.
        oauth: whether a person authorizes it in a browser, or how.
        local: whether its address may be one of this machine or of a private network.
        tools: the patterns of the names of the tools that are offered.
        read_only: the patterns of the names of the tools that change nothing, so that calls of them need no approval.
            What a server says about its own tools is not used for this.
        sampling: the model that the server may ask during a call, as ``provider:model``; none by default.
        call_seconds: the timeout of one call.
        disabled: whether the server is not used.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[tuple[str, ...], Field(max_length=1_000)] = ()
    folder: str | None = None
    read: Patterns = ()
    write: Patterns = ()
    network: bool = False
    environment: Variables = Field(default_factory=dict)
    secrets: Variables = Field(default_factory=dict)
    url: Annotated[str, Field(pattern=r"^https?://[^/?#@\s]+(/[^#\s]*)?$")] | None = None
    sse: bool = False
    headers: dict[str, str] = Field(default_factory=dict)
    auth: str | None = None
    oauth: bool | OAuthConfig = False
    local: bool = False
    tools: Patterns = ("*",)
    read_only: Patterns = ()
    sampling: str | None = None
    call_seconds: Seconds = 1_800.0
    disabled: bool = False

    @model_validator(mode="after")
    def _has_one_transport(self) -> Self:
        if bool(self.command) == (self.url is not None):
            raise ValueError("set either `command` or `url`")
        of_other = _OF_ADDRESSES if self.command else _OF_PROGRAMS
        if wrong := sorted(self.model_fields_set & of_other):
            kind = "command" if self.command else "url"
            raise ValueError(f"a server with `{kind}` has no {', '.join(f'`{one}`' for one in wrong)}")
        if twice := sorted(self.environment.keys() & self.secrets.keys()):
            raise ValueError(f"`environment` and `secrets` both set `{twice[0]}`")
        if self.oauth and self.auth is not None:
            raise ValueError("set either `auth` or `oauth`")
        if self.oauth and not self.local and not (self.url or "").startswith("https://"):
            raise ValueError("a server with `oauth` needs an address with https, or `local`")
        return self

    @property
    def authorization(self) -> OAuthConfig | None:
        """How a person authorizes it; ``None`` if that is not needed."""
        if isinstance(self.oauth, OAuthConfig):
            return self.oauth
        return OAuthConfig() if self.oauth else None

    @property
    def origin(self) -> str | None:
        """The origin of its address; ``None`` for a program."""
        if self.url is None:
            return None
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def offers(self, tool: str) -> bool:
        """Return whether a tool is offered."""
        return _matches(tool, self.tools)

    def only_reads(self, tool: str) -> bool:
        """Return whether the user says that a tool changes nothing."""
        return _matches(tool, self.read_only)


class Config(BaseModel):
    """The servers, and the limits of their connections.

    The limits are those of SAGE, whose users rely on them, except where a comment says otherwise.

    Attributes:
        servers: the servers by name, which is the namespace of their tools.
        connect_seconds, list_seconds, close_seconds: the timeouts of connecting, of listing and of closing.
        idle_seconds: how long a connection without calls is kept.
        health_seconds: a connection that was silent for so long is checked before it is used.
        stall_seconds: a call that is silent for so long is reported once.
        max_concurrent: the maximum number of calls of one connection; further calls open another one.
        max_connections: the maximum number of connections to one server; further calls wait.
        max_listed: the maximum number of tools, resources or prompts of one server.
        max_message_bytes: the maximum size of one message.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=40)], ServerConfig] = Field(
        default_factory=dict
    )
    connect_seconds: Seconds = 20.0
    list_seconds: Seconds = 60.0
    close_seconds: Seconds = 5.0
    idle_seconds: Seconds = 1_800.0
    health_seconds: Seconds = 60.0
    stall_seconds: Seconds = 120.0
    max_concurrent: Annotated[int, Field(ge=1, le=1_000)] = 100
    max_connections: Annotated[int, Field(ge=1, le=16)] = 4
    max_listed: Annotated[int, Field(ge=1, le=1_000)] = 500
    max_message_bytes: Annotated[int, Field(ge=65_536, le=64 * 1024 * 1024)] = 16 * 1024 * 1024


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, one) for one in patterns)
