"""The glossary of docs/architecture.md says what the words of public names mean, and lists the names that use them."""

import importlib
import inspect
import re
from functools import cache

import pytest

ROW = re.compile(r"^\| \*\*([a-z ]+)\*\* \| (.+?) \| (.*?) \|$", re.MULTILINE)
PACKAGES = (
    "sideband sideband.blobs sideband.broker sideband.calls sideband.commands sideband.contexts sideband.environments "
    "sideband.errors sideband.exit_codes sideband.hooks sideband.host sideband.ledger sideband.loading "
    "sideband.messages sideband.ops sideband.plugins sideband.providers sideband.sandboxing sideband.settings "
    "sideband.state sideband.store sideband.suggestions sideband.tools sideband.workers sideband_agent "
    "sideband_agent.sessions"
)


@cache
def public_classes():
    """The classes that can be imported; of hooks also the events, whose names are those of the hooks."""
    modules = map(importlib.import_module, PACKAGES.split())
    named = ((name, getattr(module, name)) for module in modules for name in module.__all__)
    return {name for name, value in named if inspect.isclass(value)}


def words_of(name):
    """The words of a name, without the endings of plurals."""
    return [re.sub(r"(?<=[^s])s$", "", word.lower()) for word in re.findall(r"[A-Z][a-z]*", name)]


@pytest.fixture
def rows(root):
    page = (root / "docs" / "architecture.md").read_text()
    return {word: set(re.findall(r"`(\w+)`", names)) for word, _, names in ROW.findall(page)}


def test_the_glossary_is_sorted_and_has_the_words_of_the_design(rows):
    assert list(rows) == sorted(rows)
    assert {"broker", "call", "capability", "effect", "grant", "ledger", "op", "run", "skill", "tool", "turn"} <= set(
        rows
    )


def test_the_table_of_where_to_look_names_places_that_are_there(root):
    page = (root / "docs" / "architecture.md").read_text()
    table = page.partition("### Where to look")[2].partition("## ")[0]
    places = re.findall(r"`((?:core|agent|libs|plugins)/[\w./-]+)`", table)
    assert len(places) >= 13
    assert [place for place in places if not (root / place).exists()] == []


def test_each_word_lists_the_public_classes_whose_names_have_it(rows):
    wrong = {}
    for word, names in rows.items():
        parts = word.split()
        using = {
            name
            for name in public_classes()
            if any(words_of(name)[i : i + len(parts)] == words_of(word.title()) for i in range(len(words_of(name))))
        }
        if using != names:
            wrong[word] = sorted(using ^ names)
    assert wrong == {}
