"""The glossary of docs/architecture.md lists the public classes whose names contain each word."""

import importlib
import inspect
import re
from functools import cache

import pytest

ROW = re.compile(r"^\| \*\*(.+?)\*\* \| (.+?) \|(.*)\|$", re.MULTILINE)
PACKAGES = (
    "sideband sideband.approvals sideband.blobs sideband.broker sideband.calls sideband.commands "
    "sideband.contexts sideband.environments sideband.errors sideband.exit_codes sideband.grants sideband.hooks "
    "sideband.host sideband.ledger sideband.loading sideband.messages sideband.ops sideband.plugins sideband.providers "
    "sideband.sandboxing sideband.settings sideband.state sideband.store sideband.suggestions "
    "sideband.tools sideband.workers sideband_agent sideband_agent.sessions sideband_cassettes"
)


@cache
def public_classes():
    """Return the names of all public classes."""
    modules = map(importlib.import_module, PACKAGES.split())
    named = ((name, getattr(module, name)) for module in modules for name in module.__all__)
    return {name for name, value in named if inspect.isclass(value)}


def words_of(name):
    """Return the words of a class name in the singular."""
    return [re.sub(r"(?<=[^s])s$", "", word.lower()) for word in re.findall(r"[A-Z][a-z]*", name)]


@pytest.fixture
def rows(root):
    page = (root / "docs" / "architecture.md").read_text()
    return {word: set(re.findall(r"`(\w+)`", names)) for word, _, names in ROW.findall(page)}


def test_glossary_is_sorted_and_complete(rows):
    assert list(rows) == sorted(rows)
    assert {"broker", "call", "capability", "effect", "grant", "ledger", "op", "run", "skill", "tool", "turn"} <= set(
        rows
    )


def test_paths_in_the_table_where_to_look_exist(root):
    page = (root / "docs" / "architecture.md").read_text()
    table = page.partition("### Where to look")[2].partition("## ")[0]
    paths = re.findall(r"`((?:core|agent|libs|plugins)/[\w./-]+)`", table)
    assert len(paths) >= 13
    assert [path for path in paths if not (root / path).exists()] == []


def test_table_of_the_kernel_lists_every_public_part(root):
    page = (root / "docs" / "architecture.md").read_text()
    table = page.partition("| in `core/src/sideband/` |")[2].partition("\n\n")[0]
    listed = {name.removeprefix("sideband.").rstrip("/") for name in re.findall(r"`([\w./]+)`", table)}
    parts = {file.stem for file in (root / "core" / "src" / "sideband").iterdir() if file.stem[0] not in "_."}
    assert parts - {"py"} <= listed  # py.typed
    assert parts >= {"broker", "ledger", "worker"}


def test_table_of_the_agent_names_parts_that_exist(root):
    page = (root / "docs" / "architecture.md").read_text()
    table = page.partition("| part of `agent/src/sideband_agent/` |")[2].partition("\n\n")[0]
    names = re.findall(r"`([\w/]+)`", table)
    assert len(names) > 20
    folder = root / "agent" / "src" / "sideband_agent"
    assert [name for name in names if not (folder / name).is_dir() and not (folder / f"{name}.py").exists()] == []


def test_glossary_lists_the_public_classes_of_each_word(rows):
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
