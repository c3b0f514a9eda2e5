"""A host killed during a model call."""

import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.anyio

KILLED = dedent(
    """
    import asyncio, os, signal, sys
    from pathlib import Path
    from types import SimpleNamespace
    import sideband_llm.plugin, sideband_store_sqlite.plugin
    from sideband import Host, Plugin
    from sideband.providers import TextDelta


    class Fake:
        name = "fake"

        async def models(self, ctx):
            return []

        async def stream(self, request, ctx):
            yield TextDelta(text="half")
            os.kill(os.getpid(), signal.SIGKILL)


    async def main():
        plugins = [
            Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
            Plugin(kind="op", name="llm", value=sideband_llm.plugin),
            Plugin(kind="provider", name="fake", value=SimpleNamespace(sideband_providers=lambda: [Fake()])),
        ]
        async with Host(home=Path(sys.argv[1]), plugins=plugins, autoload=False) as host:
            params = {"model": "fake:m", "messages": [{"role": "user", "content": "hi"}]}
            await host.op("llm.generate", params, key="session:run:1")


    asyncio.run(main())
    """
)


@pytest.fixture
def killed(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "home"], check=False, timeout=60)
    assert done.returncode == -9


async def test_lost_call_may_be_repeated_under_its_key(killed, open_host, fake, ask):
    async with open_host(fake) as host:
        assert [(one.op, one.status) for one in host.recovered] == [("llm.generate", "failed")]
        assert (await ask(host, key="session:run:1"))["content"][0]["text"] == "hello"
    assert len(fake.requests) == 1
