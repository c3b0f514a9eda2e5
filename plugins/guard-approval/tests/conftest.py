"""An agent whose scripted model works on files, and a person who answers from a list."""

from contextlib import asynccontextmanager

import pytest
import sideband_files.plugin
import sideband_guard_approval.plugin
import sideband_llm.plugin
import sideband_tools.plugin
from attrs import define, field
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval
from sideband.ops import Level, OpContext, OpFamily, op
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn


@pytest.fixture
def anyio_backend():
    return "asyncio"


@define
class Person:
    """Answers questions with the answers given, then with no. Remembers the questions."""

    answers: list = field(factory=list)
    asked: list = field(factory=list)

    async def __call__(self, request):
        self.asked.append(request)
        return self.answers.pop(0) if self.answers else Approval("deny", reason="no more answers", by="me")


class Empty(BaseModel):
    pass


class Named(BaseModel):
    name: str = ""


def leveled(level):
    """Return an op of a level, and two tools: one that dispatches it, and one that does what it does itself."""
    name = level.name.lower()

    @op(f"things.{name}", requires="things", level=level)
    async def effect(params: Named, ctx: OpContext) -> None:
        """Do it."""

    @tool(f"by_op_{name}", level=level, resume="replay")
    async def by_op(params: Named, ctx: ToolContext) -> str:
        """Do it."""
        await ctx.dispatch(effect.name, {"name": params.name}, uses=["things"])
        return "changed"

    @tool(f"itself_{name}", level=level)
    async def itself(params: Named, ctx: ToolContext) -> str:
        """Do it."""
        return "changed"

    return effect, by_op, itself


THINGS = [leveled(level) for level in Level]


class Tools:
    @staticmethod
    def sideband_tools():
        return [one for _, *both in THINGS for one in both]


class Ops:
    @staticmethod
    def sideband_ops():
        return OpFamily(name="things", ops=tuple(one for one, *_ in THINGS))


@define
class Stage:
    """An agent with a person. ``calls`` lets the model call tools in one turn, and returns the texts of the results."""

    agent: Agent
    script: Scripted
    person: Person

    async def calls(self, *calls, turns=()):
        self.script.turns += [Turn(tool_calls=[*calls]), *turns, "done"]
        return self.texts(await self.agent.invoke("go"))

    @staticmethod
    def texts(ran):
        assert ran.status == "completed", ran.error
        return [one.content[0].text for one in ran.messages if one.role == "tool"]

    @property
    def asked(self):
        return [one.subject for one in self.person.asked]


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def stage(sideband_host, work):
    """Open a host with the guard, and an agent on it."""

    @asynccontextmanager
    async def opened(*answers, mode=None, guard=None, approver=True, more=(), grants=None, **options):
        script, person = Scripted([]), Person([*answers])
        plugins = [
            Plugin("op", "files", sideband_files.plugin),
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "things", Ops),
            Plugin("provider", "scripted", script),
            Plugin("tool", "tools", sideband_tools.plugin),
            Plugin("tool", "things_tools", Tools),
            Plugin("tool", "subagent", sideband_tools.plugin.subagent),
            Plugin("tool", "plan", sideband_guard_approval.plugin.plan),
            Plugin("guard", "approval", sideband_guard_approval.plugin),
            *more,
        ]
        settings = {
            "agent": {"model": "scripted:test"},
            "grants": {
                "plugin:things_tools": ["things"],
                "plugin:tools": [f"files:path={work}/*,mode=read|write,hidden=*"],
                **(grants or {}),
            },
            "plugins": {"approval": {**({"mode": mode} if mode else {}), **(guard or {})}},
        }
        host = sideband_host(*plugins, settings=settings)
        async with host as running:
            agent = Agent(running, folder=work, approver=person if approver else None, **options)
            async with agent:
                yield Stage(agent, script, person)

    return opened
