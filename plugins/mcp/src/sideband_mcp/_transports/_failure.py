"""Why a connection failed."""

from __future__ import annotations

import anyio
from attrs import define, field

from .._errors import McpError


@define(eq=False)
class ConnectionFailure:
    """The reason for which a connection failed, if it has. The first one counts.

    Attributes:
        error: the reason.
        happened: set once there is one.
    """

    error: McpError | None = field(init=False, default=None)
    happened: anyio.Event = field(init=False, factory=anyio.Event, repr=False)

    def set(self, error: McpError) -> McpError:
        """Set the reason, unless it is known. Return the reason."""
        if self.error is None:
            self.error = error
            self.happened.set()
        return self.error
