"""Notices about the choice between several skills with the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sideband import Host


async def choices(host: Host, tool: str) -> list[str]:
    """Return a notice if another skill has the name of this tool's skill; the user may have meant that one."""
    loaded = await host.skills()
    name = tool.partition("__" if "__" in tool else ".")[0]
    sources = {str(skill.source) for skill in loaded.skills if skill.key == name}
    return [one.reason for one in loaded.problems if one.code == "skill.duplicate" and one.source in sources]
