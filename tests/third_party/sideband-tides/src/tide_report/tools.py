"""The tools of the skill."""

from sideband.skill import tides, tool


@tool
async def next_high_water(station: str) -> str:
    """Write a sentence about the next high water.

    Args:
        station: the name of a station
    """
    found = await tides.high_waters(station, count=1)
    return f"The next high water at {station} is at {found['times'][0]}."
