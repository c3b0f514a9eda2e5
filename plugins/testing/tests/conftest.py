"""Tests of the kit: they run pytest on a test module, as an author would write it."""

from textwrap import dedent

import anyio
import pytest
import sideband_testing
from sideband_agent import Agent
from sideband_testing import HostFactory, SkillWorker

HEADER = """
import anyio
import pytest
from pydantic import BaseModel
from sideband import OpFamily, Plugin, op

pytestmark = pytest.mark.anyio


class Params(BaseModel):
    text: str = ""


@op("echo.say")
async def say(params: Params, ctx) -> str:
    return params.text


class Echo:
    def sideband_ops():
        return OpFamily(name="echo", ops=(say,))


ECHO = Plugin("op", "echo", Echo)
"""


@pytest.fixture(scope="session", autouse=True)
def imported(tmp_path_factory):
    """Import what the tests use. A run of pytest in this process forgets the modules that it imported."""
    for name in sideband_testing.__all__:
        getattr(sideband_testing, name)

    async def use(folder, patch):
        hosts = HostFactory(folder / "home", patch)
        worker = SkillWorker(hosts, folder / "skills")
        source = "from sideband.skill import tool\n@tool\nasync def one() -> int: return 1\n"
        await worker.call(worker.skill("numbers", source), "one")
        async with hosts(installed=True) as host, Agent(host, model="scripted:test"):
            pass

    with pytest.MonkeyPatch.context() as patch:
        for backend in ("asyncio", "trio"):
            anyio.run(use, tmp_path_factory.mktemp("imported"), patch, backend=backend)


@pytest.fixture
def run_tests(pytester):
    """Return a function that runs the tests of a module, and returns pytest's result."""

    def run(source, *options, backends=("asyncio",), alone=False):
        params = f"@pytest.fixture(params={list(backends)!r})\ndef anyio_backend(request):\n    return request.param\n"
        pytester.makepyfile(test_author=f"{HEADER}\n\n{params}\n\n{dedent(source)}")
        pytester.makefile(".ini", pytest="[pytest]\nfilterwarnings = error\n")
        start = pytester.runpytest_subprocess if alone else pytester.runpytest_inprocess
        return start("-p", "no:cacheprovider", "-p", "no:xdist", *options)

    return run
