"""``/permissions``: the approval mode and the remembered grants, and how to revoke one."""

from __future__ import annotations

from sideband import UsageError

from ..._terminal._columns import terminal_width
from ..._terminal._grant_text import describe_grant, grant_rows
from ..._terminal._questions import user_name
from .._chat_command import ChatControl, RegisteredChatCommand

__all__ = ["PERMISSIONS"]

_MARGIN = 5


async def _run(chat: ChatControl, what: str) -> str:
    from sideband.grants import given_grants, revoke_grant

    host = chat.agent.host
    action, _, grant = what.partition(" ")
    if action not in ("", "revoke") or (action and not grant.strip()):
        raise UsageError(f"expected nothing or `revoke ID`, got `{what}`", hint="/permissions lists the ids")
    width = terminal_width() - _MARGIN
    if action:
        revoked = await revoke_grant(host, grant.strip(), (), by=f"{user_name()} (sideband chat)")
        await host.sync()
        return "\n".join(grant_rows(f"revoked for {describe_grant(revoked)}:", revoked, width))
    mode = chat.agent.approval_mode
    lines = [f"mode: {mode}; /mode changes it"] if mode else []
    for one in await given_grants(host):
        lines += grant_rows(describe_grant(one, details=True), one, width)
    return "\n".join([*lines, "/permissions revoke ID revokes a grant"] if len(lines) > 1 else [*lines, "no grants"])


PERMISSIONS = RegisteredChatCommand("permissions", "list or revoke what you have allowed", _run, "[revoke ID]")
