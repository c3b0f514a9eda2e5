"""Skills that use models and tools, for tests with real workers."""

from textwrap import dedent
from types import SimpleNamespace

import anyio
import attrs
import sideband_skills.plugin
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import Level, OpContext, OpFamily, Scope, op


@attrs.frozen
class VaultScope(Scope, family="vault"):
    name: str | None = None


class Open(BaseModel):
    name: str


OPENED = []
EVENTS = []


async def opened(number):
    """Wait until the vault was opened that often."""
    while len(OPENED) < number:
        EVENTS.append(anyio.Event())
        await EVENTS[-1].wait()


@op("vault.open", requires="vault", scope=lambda params: VaultScope(name=params.name), level=Level.CONTROLLED)
async def open_vault(params: Open, ctx: OpContext) -> str:
    """Open it."""
    OPENED.append(params.name)
    for event in EVENTS:
        event.set()
    return f"content of {params.name}"


PLUGINS = [
    Plugin("loader", "skills", sideband_skills.plugin),
    Plugin("op", "vault", SimpleNamespace(sideband_ops=lambda: OpFamily("vault", (open_vault,), scope=VaultScope))),
]

TOOLS = '''
    import asyncio

    from sideband.skill import llm, tool, vault


    @tool
    async def read(name: str, times: int = 1) -> str:
        """Read from the vault.

        Args:
            name: what to read
            times: how often
        """
        return await vault.open(name=name)


    @tool
    async def long() -> str:
        """Return a long text."""
        return "x" * 100_000


    @tool
    async def fail() -> str:
        """Raise."""
        raise ValueError("the box is empty")


    @tool
    async def hang(name: str) -> str:
        """Read, and never return."""
        await vault.open(name=name)
        await asyncio.sleep(3600)


    @tool
    async def deeper(level: int) -> dict:
        """Let a model call this tool."""
        found = await llm.agent("scripted:test", "Go deeper.", tools=["box.deeper"], partial=True)
        return {"level": level, "errors": [one["error"] for one in found["tool_calls"]]}
'''

ASKER = '''
    from sideband.skill import OpError, llm, tool


    @tool
    async def ask(tools: list, options: dict = {}) -> dict:
        """Let a model use tools."""
        try:
            return await llm.agent("scripted:test", "Read it.", tools=tools, **options)
        except OpError as error:
            names = ("phase", "iteration", "cause", "tokens", "money")
            details = {name: getattr(error, name, None) for name in names}
            return {"code": error.code, "kind": type(error).__name__, "message": str(error), **details}


    @tool
    async def definitions(tools: list) -> list:
        """Return definitions."""
        return await llm.resolve_tools(tools)
'''


def write_skill(folder, name, source, capabilities, more=""):
    path = folder / name
    path.mkdir(parents=True)
    path.joinpath("SKILL.md").write_text(
        f"---\nname: {name}\ndescription: For a test.\n{more}metadata:\n  sideband.capabilities: {capabilities}\n---\n"
    )
    path.joinpath("tools.py").write_text(dedent(source))
