"""The errors of MCP servers. Each names the server. What a server says in them is untrusted.

OpFailed
└── McpError                          mcp.failed
    ├── McpServerUnknown(LookupError)     mcp.unknown      no server has this name
    ├── McpToolUnknown(LookupError)       mcp.tool         the server has no such tool, or it is not accepted
    ├── McpNotOffered(LookupError)        mcp.feature      it has no resources or prompts, or they are not accepted
    ├── McpPromptInvalid(ValueError)      mcp.prompt       a prompt does not exist, or its arguments do not fit
    ├── McpUnavailable(ConnectionError)   mcp.unavailable  it could not be reached; nothing happened
    ├── McpPackageInvalid(ValueError)     mcp.package      its command does not name a package of a registry
    ├── McpInstallFailed(RuntimeError)    mcp.install      its packages could not be installed
    ├── McpLoginNeeded(PermissionError)   mcp.login        a person must authorize it; nothing happened
    ├── McpLoginFailed(PermissionError)   mcp.login_failed the person could not authorize it
    ├── McpInterrupted(ConnectionError)   mcp.interrupted  the connection ended during a call
    ├── McpRefused(ValueError)            mcp.refused      the server answered with an error
    ├── McpInvalid(ValueError)            mcp.invalid      the server does not follow the protocol
    ├── McpTooLarge(ValueError)           mcp.too_large    a limit on what a server sends is exceeded
    ├── McpChanged(RuntimeError)          mcp.changed      its tools are not those that were accepted
    └── McpTimeout(TimeoutError)          mcp.timeout      it did not answer in time
"""

from __future__ import annotations

from sideband.ops import OpFailed

_LONGEST = 2_000
"""How much of the text of a server an error contains at most."""


class McpError(OpFailed):
    """An MCP server failed."""

    code = "mcp.failed"
    details = ("server",)

    def __init__(self, server: str, problem: str, *, hint: str) -> None:
        super().__init__(f"the MCP server `{server}` {problem}", hint=hint)
        self.server = server


class McpServerUnknown(McpError, LookupError):
    """No server has this name."""

    code = "mcp.unknown"
    nothing_happened = True

    def __init__(self, server: str) -> None:
        super().__init__(server, "is not configured", hint=f"add it to `[plugins.mcp.servers.{server}]`")


class McpToolUnknown(McpError, LookupError):
    """The server has no tool of this name, or the user has not accepted it."""

    code = "mcp.tool"
    nothing_happened = True

    def __init__(self, server: str, tool: str) -> None:
        super().__init__(server, f"offers no tool `{tool}` that you accepted", hint=f"run `sideband mcp test {server}`")


class McpNotOffered(McpError, LookupError):
    """The server has no resources or no prompts, or the user has not accepted them."""

    code = "mcp.feature"
    nothing_happened = True

    def __init__(self, server: str, feature: str) -> None:
        super().__init__(
            server, f"offers no {feature} that you accepted", hint=f"run `sideband mcp test {server}` to see its offer"
        )


class McpPromptInvalid(McpError, ValueError):
    """A prompt does not exist, or its arguments do not fit."""

    code = "mcp.prompt"
    nothing_happened = True

    def __init__(self, server: str, problem: str, *, hint: str) -> None:
        super().__init__(server, problem, hint=hint)


class McpUnavailable(McpError, ConnectionError):
    """The server could not be reached. Nothing was sent."""

    code = "mcp.unavailable"
    nothing_happened = True

    def __init__(self, server: str, problem: str, *, hint: str = "") -> None:
        super().__init__(server, f"is unavailable: {problem}", hint=hint or f"run `sideband mcp test {server}`")


class McpPackageInvalid(McpError, ValueError):
    """The command of the server does not name a package of a registry."""

    code = "mcp.package"
    nothing_happened = True

    def __init__(self, server: str, problem: str) -> None:
        hint = "name a package and its version only; any other program can be set with its absolute path"
        super().__init__(server, f"cannot be installed: {problem}", hint=hint)


class McpInstallFailed(McpError, RuntimeError):
    """The packages of the server could not be resolved or installed. What was installed before is unchanged."""

    code = "mcp.install"

    def __init__(self, server: str, problem: str, *, hint: str) -> None:
        super().__init__(server, f"cannot be installed: {problem}", hint=hint)


class McpLoginNeeded(McpError, PermissionError):
    """The server refused the request, because a person must authorize it, or authorize more."""

    code = "mcp.login"
    nothing_happened = True

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(server, f"is not authorized: {problem}", hint=f"run `sideband mcp login {server}`")


class McpLoginFailed(McpError, PermissionError):
    """A person could not authorize the server. The login that was there before is unchanged."""

    code = "mcp.login_failed"

    def __init__(self, server: str, problem: str, *, hint: str = "") -> None:
        super().__init__(
            server, f"could not be authorized: {problem}", hint=hint or f"run `sideband mcp login {server}` again"
        )


class McpInterrupted(McpError, ConnectionError):
    """The connection ended during a call, so that its effect is unknown. The call is not repeated."""

    code = "mcp.interrupted"

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(
            server,
            f"ended during the call: {problem}; it may have done the work or a part of it",
            hint="check the effect before you repeat the call",
        )


class McpRefused(McpError, ValueError):
    """The server answered with an error of the protocol."""

    code = "mcp.refused"

    def __init__(self, server: str, number: int, message: str) -> None:
        text = f"answered with error {number}: {message[:_LONGEST]}"
        super().__init__(server, text, hint="the message is that of the server")


class McpInvalid(McpError, ValueError):
    """The server does not follow the protocol."""

    code = "mcp.invalid"

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(server, f"sent an invalid answer: {problem}", hint="report this to the author of the server")


class McpTooLarge(McpError, ValueError):
    """A limit on what a server sends is exceeded."""

    code = "mcp.too_large"

    def __init__(self, server: str, what: str, limit: int, setting: str) -> None:
        super().__init__(
            server, f"sent {what} of more than {limit:,}", hint=f"raise `{setting}` in `[plugins.mcp]` if you trust it"
        )


class McpChanged(McpError, RuntimeError):
    """The tools of the server are not those that were accepted."""

    code = "mcp.changed"
    nothing_happened = True

    def __init__(self, server: str, tool: str = "") -> None:
        what = f"changed its tool `{tool}`" if tool else "changed its tools"
        super().__init__(server, f"{what} after you accepted it", hint="look at the question that shows the change")


class McpTimeout(McpError, TimeoutError):
    """The server did not answer in time."""

    code = "mcp.timeout"

    def __init__(self, server: str, what: str, seconds: float, setting: str) -> None:
        super().__init__(
            server,
            f"did not answer {what} within {seconds:g} s",
            hint=f"raise `{setting}` if the server needs longer; check the effect before you repeat a call",
        )


ERRORS = (
    McpError,
    McpServerUnknown,
    McpToolUnknown,
    McpNotOffered,
    McpPromptInvalid,
    McpUnavailable,
    McpPackageInvalid,
    McpInstallFailed,
    McpLoginNeeded,
    McpLoginFailed,
    McpInterrupted,
    McpRefused,
    McpInvalid,
    McpTooLarge,
    McpChanged,
    McpTimeout,
)
"""All errors of the family."""
