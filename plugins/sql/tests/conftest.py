import contextlib
from pathlib import Path

import anyio
import pytest
from sideband.ops import Grant, OpDenied
from sideband_sql import plugin as sql_plugin


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


class Context:
    call = domain = effect = "1"
    principal = "user"

    def __init__(self, home, state, grant):
        self.home, self.state, self.grant = home, state, grant

    def require(self, scope):
        if self.grant is not None and not self.grant.allows(scope.family, scope.fields()):
            raise OpDenied("sql", f"{scope}")


class Runner:
    def __init__(self, home, state):
        self.home, self.state = home, state
        self.ops = {spec.name: spec for spec in sql_plugin.sideband_ops().ops}

    async def op(self, name, params, *, grants=None, deadline=None):
        spec = self.ops[name]
        grant = None if grants is None else Grant.parse(grants)
        ctx = Context(self.home, self.state, grant)
        parsed = spec.params.model_validate(params)
        for scope in spec.scope(parsed):
            ctx.require(scope)
        with anyio.fail_after(deadline) if deadline else contextlib.nullcontext():
            result = await spec.handler(parsed, ctx)
        return result.model_dump()


@pytest.fixture
def settings():
    return {}


@pytest.fixture
async def host(tmp_path: Path, settings, anyio_backend):
    config = sql_plugin.Config.model_validate(settings)
    home = tmp_path / "home"
    home.mkdir()

    class PluginContext:
        pass

    ctx = PluginContext()
    ctx.config = config
    async with sql_plugin.lifespan(ctx) as state:
        yield Runner(home, state)
