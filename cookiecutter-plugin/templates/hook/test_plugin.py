"""The hook does what each hook must do, and what its README says."""

from typing import ClassVar

import pytest
from sideband import Plugin
from sideband.errors import SidebandError
from sideband_agent import Agent
from sideband_scripted import Scripted
from sideband_testing import HostFactory
from sideband_testing.conformance import HookConformance

NAME = "{{ cookiecutter.__entry }}"


class TestConformance(HookConformance):
    plugin = f"hook.{NAME}"
    config: ClassVar = {"zone": "Europe/Vienna"}


@pytest.mark.anyio
async def test_each_model_call_has_the_time_and_no_session_stores_it(sideband_host: HostFactory) -> None:
    model = Scripted(["one", "two"], name="demo")
    settings = {"plugins": {NAME: {"zone": "Asia/Tokyo"}}}
    plugins = (f"hook.{NAME}", "op.llm", Plugin("provider", "demo", model))
    async with sideband_host(*plugins, settings=settings) as host, Agent(host, model="demo:any") as agent:
        await agent.invoke("Hello.")
        await agent.invoke("Hello again.")
    for request in model.requests:
        times = [message.text for message in request.messages if "The current time is" in message.text]
        assert len(times) == 1
        assert "(Asia/Tokyo)" in times[0]


@pytest.mark.anyio
async def test_unknown_zone_is_refused(sideband_host: HostFactory) -> None:
    settings = {"plugins": {NAME: {"zone": "Mars"}}, "policy": {"strict": True}}
    with pytest.raises(SidebandError, match="unknown time zone 'Mars'"):
        async with sideband_host(f"hook.{NAME}", settings=settings):
            pass
