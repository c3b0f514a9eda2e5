"""A mistake in the arguments of `Agent` is reported, and never widens what an agent may do."""

import pytest
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


async def test_text_in_place_of_a_list_of_tools_offers_no_tool(stage):
    async with stage([]) as agent:
        # Its characters are names too, and `*` matches all tools.
        with pytest.raises(TypeError, match="expected a list of names"):
            async with Agent(agent.host, model="scripted:test", tools="notes.*"):
                pass
        with pytest.raises(TypeError, match="expected a list of names"):
            await agent.spawn_child("go on", tools="notes.*")
        with pytest.raises(TypeError, match="`folder`: expected a Path, got a str"):
            Agent(agent.host, folder="x")
