"""The generated reference is up to date and complete."""

import importlib
import json
import re

import attrs
import pytest
from sideband import SidebandError
from sideband.settings import AgentSettings, Policy


@pytest.fixture
def generate(import_page):
    return import_page("generate")


@pytest.fixture
def events(import_page):
    return import_page("_pages.events").EVENTS


def test_reference_is_up_to_date(generate, root):
    for name, text in generate.pages().items():
        assert (root / "docs" / "reference" / name).read_text() == text, "run: python docs/generate.py"


def test_every_reference_page_is_generated(generate, root):
    assert {path.name for path in (root / "docs" / "reference").iterdir()} == set(generate.PAGES)


@pytest.mark.parametrize("model", [Policy, AgentSettings])
def test_settings_have_descriptions(model):
    for name, field in model.model_fields.items():
        is_table = hasattr(field.annotation, "model_fields")
        assert field.description or is_table, name


def test_plugin_settings_have_descriptions(page):
    for line in page("docs/reference/settings.md").text.splitlines():
        assert not re.search(r"\| *\|$", line), line


def test_error_classes_can_be_imported_from_the_listed_module(page):
    named = re.findall(r"^\| `[\w.]+` \| `([\w.]+)\.(\w+)` \|", page("docs/reference/errors.md").text, re.MULTILINE)
    assert len(named) > 50
    for module, name in named:
        assert issubclass(getattr(importlib.import_module(module), name), SidebandError)


def test_json_output_consists_of_documented_events_and_keys(talker, sideband, page, events):
    run, *_ = page("docs/agents.md").commands()
    done = sideband(*run, "--json", folder=talker)
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["event"] for line in lines} >= {"session_start", "turn_start", "tool_execution_end", "settled"}
    for line in lines:
        assert set(line) == {"event", *(field.name for field in attrs.fields(events[line["event"]]))}
    listed = page("docs/reference/events.md").section("result")
    assert set(last) == {"event", *re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)}
