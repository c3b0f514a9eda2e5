"""A registered guard, and tool calls as an agent makes them."""

from itertools import count
from types import SimpleNamespace

import pytest
import sideband_guard_loop.plugin
from attrs import define, field
from sideband.hooks import AgentStart, HookRegistry, Phase, ToolCall, ToolResult, Verdict

Config = sideband_guard_loop.plugin.Config


@pytest.fixture
def anyio_backend():
    return "asyncio"


@define
class Agent:
    """Emits events as the turn loop does: an allowed call has a result."""

    hooks: HookRegistry
    ids: count = field(factory=count)
    ran: int = 0

    async def start(self):
        await self.hooks.observe(AgentStart("r1"))

    async def call(self, tool, arguments=None, *, fails=False, content="text", read_only=False, report=True):
        """Make one call. Return the code of its denial or warning, or ``None``."""
        call = f"c{next(self.ids)}"
        arguments = arguments or {}
        decision = await self.hooks.decide(ToolCall(call, tool, arguments, read_only=read_only))
        if decision.verdict is Verdict.DENY:
            if report:
                await self.hooks.update(ToolResult(call, tool, arguments, decision.reason, is_error=True))
            return f"{_code(decision.reason)}{'!' if decision.halt else ''}"
        self.ran += 1
        result = await self.hooks.update(ToolResult(call, tool, arguments, content, is_error=fails))
        return _code(result.notes[0].text) if result.notes else None

    async def calls(self, times, *args, **kwargs):
        return [await self.call(*args, **kwargs) for _ in range(times)]


def _code(text):
    return text.partition(":")[0]


@pytest.fixture
def make_agent():
    def make(**config):
        (guard,) = sideband_guard_loop.plugin.sideband_guards()
        hooks = HookRegistry()
        context = SimpleNamespace(config=Config(**config))
        hooks.register("guard-loop", guard(), phase=Phase.GUARD, context=context, make=guard)
        return Agent(hooks)

    return make


@pytest.fixture
def agent(make_agent):
    return make_agent()


@pytest.fixture
def derive():
    return lambda agent: Agent(agent.hooks.derive(lambda context: context))
