"""Tools with one fault each."""

import logging
import os
from types import SimpleNamespace

import anyio
import attrs
from sideband import Plugin
from sideband.ops import OpParams
from sideband.tools import tool
from sideband_testing import Example, ToolConformance

LOG = logging.getLogger("faulty")


class Text(OpParams):
    text: str


@tool("faulty")
async def good(params: Text, ctx) -> str:
    """Return the text."""
    await anyio.lowlevel.checkpoint()
    return params.text


def plugin_of(one):
    return Plugin("tool", "faulty", SimpleNamespace(sideband_tools=lambda: [one], backends=("asyncio",)))


class Base(ToolConformance):
    fault = ""
    max_steps = 6
    examples = (Example("faulty", {"text": "hello"}, result="hello"),)


class TestGood(Base):
    plugin = plugin_of(good)


class TestUndescribed(Base):
    fault = "test_schemas_are_valid"
    plugin = plugin_of(attrs.evolve(good, description=" "))


def careless(arguments):
    if not isinstance(arguments.get("text"), str):
        raise TypeError("no text")
    return good.validate(arguments)


class TestValidationRaisesAnything(Base):
    fault = "test_wrong_arguments_are_refused"
    plugin = plugin_of(attrs.evolve(good, validate=careless))


async def changed(arguments, ctx):
    return "bye"


class TestOtherResult(Base):
    fault = "test_examples_run"
    plugin = plugin_of(attrs.evolve(good, run=changed))


async def logs(arguments, ctx):
    LOG.warning("arguments %s", arguments)
    return arguments["text"]


class TestLogsArguments(Base):
    fault = "test_secrets_stay_hidden"
    plugin = plugin_of(attrs.evolve(good, run=logs))


async def leaks(arguments, ctx):
    descriptor = os.open(os.devnull, os.O_RDONLY)
    await anyio.lowlevel.checkpoint()
    os.close(descriptor)
    return arguments["text"]


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = plugin_of(attrs.evolve(good, run=leaks))
