"""Hook plugins with one fault each."""

import logging
import os
from types import SimpleNamespace

import anyio
from sideband import Plugin
from sideband.hooks import Input, Transform, hookimpl
from sideband_testing import HookConformance

LOG = logging.getLogger("faulty")


def hook(function):
    async def input(event, ctx):  # noqa: A001  the name of the hook
        return await function(event)

    return Plugin("hook", "faulty", SimpleNamespace(input=hookimpl(input), backends=("asyncio",)))


class Base(HookConformance):
    fault = ""
    max_steps = 6
    events = (Input("hello"),)


async def good(event):
    await anyio.lowlevel.checkpoint()
    return Transform(event.text.strip())


class TestGood(Base):
    plugin = hook(good)


async def wrong(event):
    return event.text


class TestWrongAnswer(Base):
    fault = "test_answers_have_the_types_of_their_hooks"
    plugin = hook(wrong)


async def leaks(event):
    descriptor = os.open(os.devnull, os.O_RDONLY)
    await anyio.lowlevel.checkpoint()
    os.close(descriptor)


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = hook(leaks)


async def logs(event):
    LOG.warning("got %s", event.text)


class TestLogsContent(Base):
    fault = "test_secrets_stay_hidden"
    plugin = hook(logs)


def registered(function):
    """Return a plugin whose hooks are those of an object that a function returns."""
    return Plugin("hook", "faulty", SimpleNamespace(sideband_hooks=lambda: hook(function).value, backends=("asyncio",)))


class TestGoodWithAFunction(Base):
    plugin = registered(good)


class TestWrongAnswerWithAFunction(Base):
    fault = "test_answers_have_the_types_of_their_hooks"
    plugin = registered(wrong)


class TestCancelledLeavesADescriptorWithAFunction(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = registered(leaks)
