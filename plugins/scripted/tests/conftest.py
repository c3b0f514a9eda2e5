"""A host with a scripted provider."""

import pytest
import sideband_scripted.plugin
from sideband import Plugin
from sideband_testing import ProviderClient


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def open_host(sideband_host):
    """Build a host whose provider `scripted` is the given object or plays the given file."""

    def make(value=sideband_scripted.plugin, **config):
        plugin = Plugin("provider", "scripted", value)
        return sideband_host(plugin, settings={"plugins": {"scripted": config}} if config else {})

    return make


@pytest.fixture
def listen():
    """Call the provider of a host. Return the deltas and the message, or raise the provider's error."""

    async def ask(host, *messages, into=None, **fields):
        events = [] if into is None else into
        message = await ProviderClient(host, "scripted").ask(*messages, into=events, **fields)
        return events[:-1], message

    return ask
