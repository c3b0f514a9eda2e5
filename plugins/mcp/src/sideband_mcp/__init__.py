"""The op family `mcp` of sideband: servers of the Model Context Protocol, each a source of gated tools.

Import from here to catch the errors of its ops or to use their models.
"""

from ._config import Config, ServerConfig
from ._errors import (
    McpChanged,
    McpError,
    McpInstallFailed,
    McpInterrupted,
    McpInvalid,
    McpLoginFailed,
    McpLoginNeeded,
    McpNotOffered,
    McpPackageInvalid,
    McpPromptInvalid,
    McpRefused,
    McpServerUnknown,
    McpTimeout,
    McpTooLarge,
    McpToolUnknown,
    McpUnavailable,
)
from ._models import McpCallResult, McpListResult, ToolDefinition
from ._oauth._config import OAuthConfig
from ._scope import McpScope
from ._version import __version__

__all__ = [
    "Config",
    "McpCallResult",
    "McpChanged",
    "McpError",
    "McpInstallFailed",
    "McpInterrupted",
    "McpInvalid",
    "McpListResult",
    "McpLoginFailed",
    "McpLoginNeeded",
    "McpNotOffered",
    "McpPackageInvalid",
    "McpPromptInvalid",
    "McpRefused",
    "McpScope",
    "McpServerUnknown",
    "McpTimeout",
    "McpTooLarge",
    "McpToolUnknown",
    "McpUnavailable",
    "OAuthConfig",
    "ServerConfig",
    "ToolDefinition",
    "__version__",
]
