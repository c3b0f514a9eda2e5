"""Guards with one fault each."""

import logging
import os

import anyio
from sideband import Plugin
from sideband.hooks import Allow, Deny, ToolCall, hookimpl
from sideband_testing import GuardConformance

LOG = logging.getLogger("faulty")


def guard(cls):
    cls.backends = ("asyncio",)
    return Plugin("guard", "faulty", cls)


class Good:
    def __init__(self):
        self.calls = 0

    @hookimpl
    def agent_start(self, event):
        self.calls = 0

    @hookimpl
    async def tool_call(self, event):
        await anyio.lowlevel.checkpoint()
        if event.arguments.get("name") == "secret":
            return Deny("not this one: read another")
        self.calls += 1
        return Deny("too many calls in one run") if self.calls > 2 else None


READ = ToolCall("c1", "notes.read", {"name": "a"})
SECRET = ToolCall("c2", "notes.read", {"name": "secret"})


class Base(GuardConformance):
    fault = ""
    max_steps = 6
    allows = (READ,)
    denies = (SECRET,)
    turns = (READ, READ, READ)


class TestGood(Base):
    plugin = guard(Good)


class Lenient(Good):
    @hookimpl
    async def tool_call(self, event):
        self.calls += 1
        len(event.arguments)
        return Deny("too many calls in one run") if self.calls > 2 else None


class TestAllowsTheWrongCall(Base):
    fault = "test_it_denies_and_allows_what_it_should"
    plugin = guard(Lenient)


class FailsOpen(Good):
    @hookimpl
    async def tool_call(self, event):
        try:
            return await super().tool_call(event)
        except Exception:  # noqa: BLE001  its fault
            return Allow()


class TestFailsOpen(Base):
    fault = "test_it_denies_what_it_cannot_read"
    plugin = guard(FailsOpen)


class Shared(Good):
    """Counts for all agents."""

    count = 0

    def __init__(self):
        pass

    @property
    def calls(self):
        return Shared.count

    @calls.setter
    def calls(self, value):
        Shared.count = value


class TestSharesItsCounter(Base):
    fault = "test_each_agent_has_a_guard_of_its_own"
    plugin = guard(Shared)


class NeverReset(Good):
    @hookimpl
    def agent_start(self, event):
        pass


class TestIsNotReset(Base):
    fault = "test_a_new_run_resets_it"
    plugin = guard(NeverReset)


class Wrong(Good):
    @hookimpl
    def agent_start(self, event):
        self.calls = 0
        return "started"


class TestWrongAnswer(Base):
    fault = "test_answers_have_the_types_of_their_hooks"
    plugin = guard(Wrong)


class Leaks(Good):
    @hookimpl
    async def tool_call(self, event):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        found = None
        try:
            found = await super().tool_call(event)
        except Exception:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return found


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = guard(Leaks)


class Logs(Good):
    @hookimpl
    async def tool_call(self, event):
        LOG.warning("arguments %s", dict(event.arguments))
        return await super().tool_call(event)


class TestLogsArguments(Base):
    fault = "test_secrets_stay_hidden"
    plugin = guard(Logs)
