"""Parameters and results of the ops, and the definition of a tool."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from sideband.ops import OpParams

from ._config import Patterns, Variables

ServerName = Annotated[str, Field(min_length=1, max_length=40, description="the name of the server")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ToolDefinition(BaseModel):
    """A tool as its server defines it. What a model sees of it is pinned by its digest.

    Attributes:
        name: the name, as the server says it.
        description: what it does.
        parameters: the JSON Schema of its arguments.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str = ""
    parameters: dict[str, JsonValue]

    @cached_property
    def digest(self) -> str:
        """The digest of all that a model sees."""
        return digest_of([self.name, self.description, self.parameters])


class McpListParams(OpParams):
    """Parameters of `mcp.list`."""

    server: ServerName


class McpAddParams(OpParams):
    """Parameters of `mcp.add`: a program, as in the settings."""

    server: ServerName
    command: tuple[str, ...] = Field(min_length=1, max_length=1_000, description="the program and its arguments")
    environment: Variables = Field(default_factory=dict, repr=False, description="further environment variables")
    read: Patterns = Field(default=(), description="the files and folders that it may read")
    network: bool = Field(default=False, description="whether it may use the network")


class McpListResult(BaseModel):
    """The tools of a server.

    Attributes:
        tools: the definitions that the user accepted and the server still has.
        features: what it offers besides tools, of ``resources`` and ``prompts``.
        accepted: the digest of the catalog that the user accepted; empty before that.
        offered: the digest of what the server offers now.
        catalog: the digest of what is accepted once the user has accepted the changes.
        changes: how the two differ, as lines of text; empty if all definitions are accepted. What does not fit into one
            question follows after these are accepted.
        problems: the tools that were omitted, and why.
        names: the names of all tools that the server offers now.
        software: the name and version of the server, as it says them.
        protocol: the version of the protocol that it speaks.
        install: the digest of the packages that must be installed before it can be started; everything else is empty
            then.
        packages: these packages, with their versions and hashes.
    """

    tools: tuple[ToolDefinition, ...]
    features: tuple[str, ...] = ()
    accepted: str
    offered: str
    catalog: str = ""
    changes: tuple[str, ...]
    problems: tuple[str, ...]
    names: tuple[str, ...] = ()
    software: str = ""
    protocol: str = ""
    install: str = ""
    packages: tuple[str, ...] = ()


class McpReadParams(OpParams):
    """Parameters of `mcp.read`."""

    server: ServerName
    catalog: Digest = Field(description="the digest of the accepted catalog")
    uri: str = Field(min_length=1, max_length=4_096, description="the address of the resource, as the server lists it")


class McpContent(BaseModel):
    """A part of a resource.

    Attributes:
        uri: its address.
        type: its media type, if the server says it.
        text: its text, or ``None`` if it is not text.
        data: its bytes otherwise.
    """

    uri: str
    type: str = ""
    text: str | None = None
    data: bytes | None = None


class McpReadResult(BaseModel):
    """The parts of a resource."""

    contents: tuple[McpContent, ...]


class McpResourcesParams(OpParams):
    """Parameters of `mcp.resources`."""

    server: ServerName
    catalog: Digest = Field(description="the digest of the accepted catalog")


class ListedResource(BaseModel):
    """A resource, or a template of the addresses of several.

    Attributes:
        uri: the address, or its template.
        name: the name.
        description: what it is.
        type: its media type, if the server says it.
        is_template: whether the address has variables in braces.
    """

    uri: str
    name: str
    description: str = ""
    type: str = ""
    is_template: bool = False


class McpResourcesResult(BaseModel):
    """The resources of a server."""

    resources: tuple[ListedResource, ...]


class McpPromptsParams(OpParams):
    """Parameters of `mcp.prompts`."""

    server: ServerName
    catalog: Digest = Field(description="the digest of the accepted catalog")


class PromptArgument(BaseModel):
    """An argument of a prompt.

    Attributes:
        name: the name.
        description: what it is.
        required: whether it must be given.
    """

    name: str
    description: str = ""
    required: bool = False


class ListedPrompt(BaseModel):
    """A prompt.

    Attributes:
        name: the name, as the server says it.
        description: what it does.
        arguments: its arguments.
    """

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class McpPromptsResult(BaseModel):
    """The prompts of a server."""

    prompts: tuple[ListedPrompt, ...]


class McpPromptParams(OpParams):
    """Parameters of `mcp.prompt`."""

    server: ServerName
    catalog: Digest = Field(description="the digest of the accepted catalog")
    name: str = Field(min_length=1, max_length=1_024, description="the name of the prompt")
    arguments: dict[str, str] = Field(default_factory=dict, description="its arguments")


class McpPromptResult(BaseModel):
    """The text of a prompt.

    Attributes:
        text: the texts of its messages. Those of an assistant are marked.
    """

    text: str


class McpAcceptParams(OpParams):
    """Parameters of `mcp.accept`."""

    server: ServerName
    catalog: Digest = Field(description="the digest of what is accepted then")
    changes: tuple[str, ...] = Field(description="the differences, which the question shows")


class McpInstallParams(OpParams):
    """Parameters of `mcp.install`."""

    server: ServerName
    packages: Digest = Field(description="the digest of the packages, as listed")
    changes: tuple[str, ...] = Field(description="the packages, which the question shows")


class McpChangesParams(OpParams):
    """Parameters of `mcp.changes`."""

    server: ServerName
    accepted: str = Field(description="the digest of the accepted catalog, as listed")
    offered: str = Field(description="the digest of what the server offered, as listed")


class McpCallParams(OpParams):
    """Parameters of `mcp.call`."""

    server: ServerName
    tool: str = Field(min_length=1, max_length=1_024, description="the name of the tool, as the server says it")
    catalog: Digest = Field(description="the digest of the accepted catalog")
    arguments: dict[str, JsonValue] = Field(default_factory=dict, description="the arguments")


class McpAsk(BaseModel):
    """What a server asks during a call. All of it is the word of the server.

    Attributes:
        id: names it in the answer.
        kind: a ``form`` for the person, an ``address`` that the person should open, or a ``sample`` of a model.
        message: what the server says to the person.
        form: the JSON Schema of the form.
        address: the address.
        sample: the request for the model, as the protocol defines it.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    kind: Literal["form", "address", "sample"]
    message: str
    form: dict[str, JsonValue] = Field(default_factory=dict)
    address: str = ""
    sample: dict[str, JsonValue] = Field(default_factory=dict)


class McpAnswerParams(OpParams):
    """Parameters of `mcp.answer`."""

    server: ServerName
    tool: str = Field(min_length=1, max_length=1_024)
    catalog: Digest
    exchange: str = Field(min_length=1, max_length=64, description="the id of the call, as `mcp.call` returned it")
    ask: str = Field(min_length=1, max_length=64, description="the id of what the server asked")
    action: Literal["accept", "decline", "cancel", "abandon"] = Field(
        description="what the person decided; `abandon` if the tool has ended without an answer, which ends the call"
    )
    content: dict[str, JsonValue] = Field(default_factory=dict)


class McpCallResult(BaseModel):
    """The result of a call, or what the server asks before it goes on.

    Attributes:
        ask: what the server asks; the rest is empty then. `mcp.answer` continues the call.
        exchange: the id of a call that continues.
        content: the parts, as the protocol defines them.
        structured: the structured result, if there is one.
        is_error: whether the tool failed.
    """

    ask: McpAsk | None = None
    exchange: str = ""
    content: tuple[dict[str, JsonValue], ...] = ()
    structured: JsonValue = None
    is_error: bool = False


class McpLoginParams(OpParams):
    """Parameters of `mcp.login`."""

    server: ServerName
    redirect: str | None = Field(
        default=None, max_length=8_192, repr=False, description="the address to which the browser was sent"
    )


class McpServerParams(OpParams):
    """Parameters of `mcp.authorize` and `mcp.logout`."""

    server: ServerName


class McpAuthorizeResult(BaseModel):
    """What a person needs to authorize a server.

    Attributes:
        address: the address to open in a browser.
        origin: its origin: who asks for the person's password there.
        server: the origin of the server that gets the access.
        redirect: the address to which the browser is sent after it.
    """

    address: str
    origin: str
    server: str
    redirect: str


class McpLoginResult(BaseModel):
    """A login.

    Attributes:
        issuer: the authorization server.
        scope: the scopes that were granted, separated by spaces.
    """

    issuer: str
    scope: str


class McpLogoutResult(BaseModel):
    """The end of a login.

    Attributes:
        deleted: whether there was one.
        revoked: whether the authorization server confirms that it does not accept its tokens any more.
    """

    deleted: bool
    revoked: bool


def digest_of(value: Any) -> str:
    """Return the SHA-256 digest of JSON data, which does not depend on the order of keys."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
