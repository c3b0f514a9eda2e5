"""The provider does what each provider must do, and what its README says."""

import sys
from typing import ClassVar

import pytest
from sideband.messages import UserMessage
from sideband.providers import ModelRequest
from sideband_agent import Agent
from sideband_testing import HostFactory
from sideband_testing.conformance import ProviderConformance

NAME = "{{ cookiecutter.__entry }}"
SHOUT = "import sys; print(sys.stdin.read().rpartition('user: ')[2].upper(), end='')"
MODELS = {
    "shout": [sys.executable, "-c", SHOUT],
    "broken": [sys.executable, "-c", "print('half'); raise SystemExit(3)"],
    "missing": ["/no/such/program"],
}


def request(model: str) -> ModelRequest:
    return ModelRequest(model=model, messages=(UserMessage(content="hello"),))


class TestConformance(ProviderConformance):
    plugin = f"provider.{NAME}"
    config: ClassVar = {"models": MODELS}
    requests: ClassVar = [request("shout")]
    failing: ClassVar = {
        "provider.stream": request("broken"),
        "provider.unreachable": request("missing"),
        "provider.unconfigured": request("unknown"),
    }
    usage = False


@pytest.mark.anyio
async def test_agent_gets_what_the_program_writes(sideband_host: HostFactory) -> None:
    settings = {"plugins": {NAME: {"models": MODELS}}}
    async with (
        sideband_host(f"provider.{NAME}", "op.llm", settings=settings) as host,
        Agent(host, model=f"{NAME}:shout") as agent,
    ):
        assert (await agent.invoke("Hello.")).text == "HELLO."
