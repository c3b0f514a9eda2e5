"""The client of a connection, as sessions use it."""

from __future__ import annotations

from typing import Protocol

from acp.schema import (
    CreateElicitationResponse,
    ElicitationMode,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from attrs import field, frozen

from ._updates import Update


class ClientConnection(Protocol):
    """What a session asks of its client."""

    async def session_update(self, session_id: str, update: Update) -> None:
        """Send an update."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption]
    ) -> RequestPermissionResponse:
        """Ask the user for an approval."""

    async def create_elicitation(self, message: str, mode: ElicitationMode) -> CreateElicitationResponse:
        """Ask the user to fill in a form."""


@frozen
class AcpClient:
    """The client of a connection.

    Attributes:
        connection: sends requests to it.
        name: its name, as it says.
        has_forms: whether it can show forms to its user.
    """

    connection: ClientConnection = field(repr=False)
    name: str = "editor"
    has_forms: bool = False
