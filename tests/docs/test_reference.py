"""The reference is what the code says."""

import importlib
import json
import re

import attrs
import pytest
from sideband import SidebandError
from sideband.settings import AgentSettings, Policy


@pytest.fixture
def generate(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "docs")
    return importlib.import_module("generate")


@pytest.fixture
def events(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "docs")
    return importlib.import_module("_pages.events").EVENTS


def test_the_reference_is_what_the_code_says(generate, root):
    for name, text in generate.pages().items():
        assert (root / "docs" / "reference" / name).read_text() == text, "run: python docs/generate.py"


def test_every_page_of_the_reference_is_generated(generate, root):
    assert {path.name for path in (root / "docs" / "reference").iterdir()} == set(generate.PAGES)


@pytest.mark.parametrize("model", [Policy, AgentSettings])
def test_every_setting_says_what_it_is_for(model):
    for name, field in model.model_fields.items():
        is_table = hasattr(field.annotation, "model_fields")
        assert field.description or is_table, name


def test_every_setting_of_every_plugin_says_what_it_is_for(page):
    for line in page("docs/reference/settings.md").text.splitlines():
        assert not re.search(r"\| *\|$", line), line


def test_classes_with_a_module_can_be_imported_from_there(page):
    named = re.findall(r"^\| `[\w.]+` \| `([\w.]+)\.(\w+)` \|", page("docs/reference/errors.md").text, re.MULTILINE)
    assert len(named) > 50
    for module, name in named:
        assert issubclass(getattr(importlib.import_module(module), name), SidebandError)


def test_every_line_of_json_is_an_event_of_the_reference_with_its_keys(talker, sideband, page, events):
    run, *_ = page("docs/agents.md").commands()
    done = sideband(*run, "--json", folder=talker)
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["event"] for line in lines} >= {"session_start", "turn_start", "tool_execution_end", "settled"}
    for line in lines:
        assert set(line) == {"event", *(field.name for field in attrs.fields(events[line["event"]]))}
    listed = page("docs/reference/events.md").section("result")
    assert set(last) == {"event", *re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)}
