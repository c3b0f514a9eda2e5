from itertools import count

import pytest
import sideband_guard_loop.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.hooks import ToolCall, ToolResult

pytestmark = pytest.mark.anyio


@pytest.fixture
async def host(tmp_path):
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="guard", name="guard-loop", value=sideband_guard_loop.plugin),
    ]
    settings = {"plugins": {"guard-loop": {"repeated_exact_failure_block": 1}}}
    async with Host(home=tmp_path, plugins=plugins, autoload=False, settings=settings) as one:
        yield one


async def test_host_loads_the_guard_with_its_configuration(host):
    ids = count()
    hooks = host.hooks.derive(lambda context: context)
    verdicts = []
    for _ in range(2):
        call = f"c{next(ids)}"
        verdicts.append((await hooks.decide(ToolCall(call, "web.get", {}))).verdict.value)
        await hooks.update(ToolResult(call, "web.get", {}, "no network", is_error=True))
    assert verdicts == ["allow", "deny"]
