"""A host with a scripted provider."""

from contextlib import aclosing

import pytest
import sideband_scripted.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.messages import UserMessage
from sideband.providers import Finished, ModelRequest


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def open_host(tmp_path):
    """Build a host whose provider `scripted` is the given object or plays the given file."""

    def make(value=sideband_scripted.plugin, **config):
        return Host(
            home=tmp_path / "home",
            settings={"plugins": {"scripted": config}} if config else {},
            plugins=[
                Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
                Plugin(kind="provider", name="scripted", value=value),
            ],
            autoload=False,
        )

    return make


@pytest.fixture
def listen():
    """Call the provider of a host. Return the deltas and the message, or raise the provider's error."""

    async def ask(host, *messages, model="test", into=None, **fields):
        provider, ctx = await host.broker.ops.provider("scripted")
        request = ModelRequest(model=model, messages=messages or (UserMessage(content="hello"),), **fields)
        deltas = [] if into is None else into
        async with aclosing(provider.stream(request, ctx)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return deltas, event.message
                deltas.append(event)
        raise AssertionError("the stream ended without a `Finished` event")

    return ask
