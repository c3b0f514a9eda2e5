"""A host with this plugin and its own home directory."""

import hashlib
from types import SimpleNamespace

import pytest
import sideband_blobs.plugin
from sideband import Plugin, hookimpl
from sideband.hooks import Deny


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def settings():
    return {}


@pytest.fixture
def previews():
    """The previews so far. If `previews.refuse` is set, the ops are denied."""

    class Previews(list):
        refuse = False

    return Previews()


@pytest.fixture
def make_host(sideband_host, settings, previews):
    """Return a function that opens a host with a given home."""

    @hookimpl
    async def op_call(event):
        if event.preview is not None:
            previews.append(await event.preview(event.params))
        return Deny("preview only") if previews.refuse else None

    def make(home):
        guard = Plugin("guard", "watch", type("Guard", (), {"op_call": staticmethod(op_call)}))
        plugins = [Plugin("op", "blobs", sideband_blobs.plugin), guard]
        return sideband_host(*plugins, home=home, settings={"plugins": {"blobs": settings}})

    return make


@pytest.fixture
async def host(tmp_path, make_host, anyio_backend):
    async with make_host(tmp_path / "home") as host:
        yield host


@pytest.fixture
def blobs(host):
    """The ops by name, called as the user; `grants` and `on_effect` as for `host.op`."""

    def op(name):
        async def run(*, grants=None, on_effect=None, **params):
            return await host.op(f"blobs.{name}", params, grants=grants, on_effect=on_effect)

        return run

    return SimpleNamespace(**{name: op(name) for name in ("put", "get", "stat", "list", "delete")})


@pytest.fixture
def digest():
    def of(data):
        return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()

    return of
