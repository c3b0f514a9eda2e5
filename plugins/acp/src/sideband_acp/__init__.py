"""The agent of sideband for editors, over the Agent Client Protocol.

Import from here to catch the errors that clients get.
"""

from ._errors import (
    AcpBusy,
    AcpFailed,
    AcpFolderInvalid,
    AcpOptionUnknown,
    AcpPromptInvalid,
    AcpServersRefused,
    AcpSessionsExceeded,
    AcpSessionUnknown,
)
from ._version import __version__

__all__ = [
    "AcpBusy",
    "AcpFailed",
    "AcpFolderInvalid",
    "AcpOptionUnknown",
    "AcpPromptInvalid",
    "AcpServersRefused",
    "AcpSessionUnknown",
    "AcpSessionsExceeded",
    "__version__",
]
