"""The tool does what each tool must do, and what its README says."""

from typing import ClassVar

import pytest
from sideband import Plugin
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn
from sideband_testing import HostFactory
from sideband_testing.conformance import Example, ToolConformance

NAME = "{{ cookiecutter.__entry }}"


class TestConformance(ToolConformance):
    plugin = f"tool.{NAME}"
    examples: ClassVar = [
        Example(f"{NAME}.calculate", {"expression": "0.1 + 0.2"}, result="0.3"),
        Example(f"{NAME}.calculate", {"expression": "-(3 + 4) * 5 // 2"}, result="-17"),
        Example(f"{NAME}.calculate", {"expression": "1 / 0"}, error="DivisionByZero"),
        Example(f"{NAME}.calculate", {"expression": "9**9**9"}, error="is larger than 1000"),
        Example(f"{NAME}.calculate", {"expression": "__import__('os')"}, error="only numbers"),
        Example(f"{NAME}.calculate", {"expression": "1 +"}, error="not an expression"),
        Example(f"{NAME}.calculate", {"expression": "-" * 60 + "1"}, error="deeper than 50 levels"),
    ]


@pytest.mark.anyio
async def test_model_gets_the_result(sideband_host: HostFactory) -> None:
    call = (f"{NAME}__calculate", {"expression": "2 ** 100"})
    model = Scripted([Turn(tool_calls=[call]), "It is large."], name="demo")
    plugins = (f"tool.{NAME}", "op.llm", Plugin("provider", "demo", model))
    async with sideband_host(*plugins) as host, Agent(host, model="demo:any") as agent:
        result = await agent.invoke("What is 2 to the power of 100?")
    assert "1267650600228229401496703205376" in [message.text for message in result.messages if message.role == "tool"]
