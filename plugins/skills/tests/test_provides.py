"""The services that a skill provides."""

import pytest

TOOLS = '''
from sideband.skill import tool


@tool
async def lookup(city: str) -> str:
    """Look up."""


@tool
async def find(city: str) -> str:
    """Find."""


async def hidden() -> str:
    """Not a tool."""
'''


@pytest.fixture
def providing(load_one):
    def load(text, tools=TOOLS):
        manifest = f"---\nname: demo\ndescription: x\nmetadata:\n  sideband.provides: {text}\n---\n"
        return load_one(manifest, {"run.py": tools})

    return load


def test_services_are_read_with_their_tools(providing):
    skill = providing("weather_lookup=lookup places=find also=find")
    assert skill.provides == {"weather_lookup": "lookup", "places": "find", "also": "find"}
    assert skill.problems == ()


@pytest.mark.parametrize(
    "word", ["Weather=lookup", "weather", "weather=", "=lookup", "a-b=lookup", f"{'x' * 65}=lookup"]
)
def test_invalid_entry_is_ignored_and_reported_with_its_form(providing, codes, word):
    skill = providing(f"{word} places=find")
    assert skill.provides == {"places": "find"}
    assert codes(skill.problems) == ["provides"]
    assert "write `service=tool`" in skill.problems[0].hint


def test_tool_that_does_not_exist_is_reported_with_the_closest_name(providing, codes):
    skill = providing("weather=lookpu secret=hidden")
    assert skill.provides == {}
    assert codes(skill.problems) == ["provides.tool", "provides.tool"]
    first = skill.problems[0]
    assert "'lookpu' (did you mean `lookup`?); its tools are" in first.reason
    assert "the service `weather` is not provided" in first.reason


def test_first_of_two_entries_for_one_service_counts(providing, codes):
    skill = providing("weather=lookup weather=find")
    assert (skill.provides, codes(skill.problems)) == ({"weather": "lookup"}, ["provides"])


def test_number_of_services_is_limited(providing):
    skill = providing(" ".join(f"s{number}=find" for number in range(60)))
    assert len(skill.provides) == 50


def test_services_are_kept_in_the_cache(make, load_cached, settled, opened, skills):
    make(more="metadata:\n  sideband.provides: weather=run\n")
    first = load_cached(skills).skills[0]
    opened.clear()
    assert load_cached(skills).skills[0].provides == first.provides == {"weather": "run"}
    assert opened == []
