"""Sources of tools with one fault each."""

import logging
import os
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import attrs
from sideband import Plugin
from sideband.ops import OpParams
from sideband.tools import tool
from sideband_testing import Example, ToolSourceConformance

LOG = logging.getLogger("faulty")


class Text(OpParams):
    text: str


@tool("faulty.say")
async def say(params: Text, ctx) -> str:
    """Return the text."""
    return params.text


class Good:
    name = "faulty"
    scope = "host"
    tools = (say,)

    @asynccontextmanager
    async def open(self, ctx):
        await anyio.lowlevel.checkpoint()
        yield self

    async def list(self):
        return list(self.tools)

    async def changed(self):
        await anyio.sleep_forever()


def source(cls):
    return Plugin("tool", "faulty", SimpleNamespace(sideband_tools=lambda: [cls()], backends=("asyncio",)))


class Base(ToolSourceConformance):
    fault = ""
    max_steps = 6
    examples = (Example("faulty.say", {"text": "hello"}, result="hello"),)


class TestGood(Base):
    plugin = source(Good)


class Foreign(Good):
    tools = (attrs.evolve(say, name="other.say"),)


class TestForeignName(Base):
    fault = "test_names_are_in_its_namespace"
    plugin = source(Foreign)
    examples = ()
    overrides = {"test_schemas_are_valid": "the host reports the name too"}


class Shuffled(Good):
    count = 0

    async def list(self):
        self.count += 1
        other = attrs.evolve(say, name="faulty.other")
        return [say, other] if self.count % 2 else [other, say]


class TestListsInAnyOrder(Base):
    fault = "test_listing_again_has_the_same_tools"
    plugin = source(Shuffled)


class LeavesOpen(Good):
    @asynccontextmanager
    async def open(self, ctx):
        yield self

    async def changed(self):
        os.open(os.devnull, os.O_RDONLY)
        await anyio.sleep_forever()


class TestLeavesADescriptor(Base):
    fault = "test_closing_leaves_nothing_behind"
    plugin = source(LeavesOpen)
    overrides = {"test_closed_host_leaves_nothing_behind": "a host waits for changes too"}


class LeaksWhenCancelled(Good):
    @asynccontextmanager
    async def open(self, ctx):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        await anyio.lowlevel.checkpoint()
        os.close(descriptor)
        yield self


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = source(LeaksWhenCancelled)


def careless(arguments):
    if not isinstance(arguments.get("text"), str):
        raise TypeError("no text")
    return say.validate(arguments)


class Careless(Good):
    tools = (attrs.evolve(say, validate=careless),)


class TestValidationRaisesAnything(Base):
    fault = "test_wrong_arguments_are_refused"
    plugin = source(Careless)


class Undescribed(Good):
    tools = (attrs.evolve(say, description=" "),)


class TestUndescribed(Base):
    fault = "test_schemas_are_valid"
    plugin = source(Undescribed)


async def changed(arguments, ctx):
    return "bye"


class Changed(Good):
    tools = (attrs.evolve(say, run=changed),)


class TestOtherResult(Base):
    fault = "test_examples_run"
    plugin = source(Changed)


async def logs(arguments, ctx):
    LOG.warning("arguments %s", arguments)
    return arguments["text"]


class Logs(Good):
    tools = (attrs.evolve(say, run=logs),)


class TestLogsArguments(Base):
    fault = "test_secrets_stay_hidden"
    plugin = source(Logs)
