"""The documented surface is implemented: hooks are emitted, and settings and metadata keys are read."""

import ast
import importlib
import re
from pathlib import Path

import attrs
import pytest
from pydantic import BaseModel
from sideband.hooks import HOOK_SPECS
from sideband.settings import AgentSettings, BudgetSettings, CompactionSettings, Policy, Settings

ROOT = Path(__file__).parents[1]
LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
# Parsed, and reported as unused.
NOT_USED = {"connections"}
# All keys are rejected, so only the settings module reads it.
REFUSED = {"Settings.dist"}
# Settings that are read through an attribute with another name.
READ_AS = {"Policy.isolation": "tier", "SkillSpec.isolation": "alone"}


def used(trees, kind, name_of, *, but):
    return {
        name_of(node)
        for path, tree in trees.items()
        if not any(part in path.as_posix() for part in but)
        for node in ast.walk(tree)
        if isinstance(node, kind)
    }


@pytest.fixture(scope="module")
def called(trees):
    """The names of all functions and classes that are called, and of the events that are passed to ``emit``."""

    def name_of(call):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        return getattr(call.args[0], "id", "") if name == "emit" and call.args else name

    return used(trees, ast.Call, name_of, but=("sideband/hooks/",))


@pytest.fixture(scope="module")
def read(trees):
    """All attribute accesses as pairs of owner and name, such as ``policy`` and ``timeout``."""

    def pair_of(node):
        owner = node.value.func if isinstance(node.value, ast.Call) else node.value
        return getattr(owner, "id", getattr(owner, "attr", "")).removeprefix("_"), node.attr

    return used(trees, ast.Attribute, pair_of, but=("sideband/settings/_agent.py", "sideband/settings/_policy.py"))


def test_hooks_are_emitted_by_the_kernel_the_agent_or_a_plugin(called):
    assert {hook for hook, spec in HOOK_SPECS.items() if spec.event.__name__ not in called} == set()


@pytest.mark.parametrize(
    ("table", "owners"),
    [
        (Settings, {"settings"}),
        (Policy, {"policy"}),
        (AgentSettings, {"settings"}),
        (CompactionSettings, {"compaction", "settings"}),
    ],
)
def test_settings_are_read(table, owners, read):
    readers = {name for owner, name in read if owner in owners}
    keys = {f"{table.__name__}.{name}": name for name in table.model_fields}
    assert {key for key, name in keys.items() if READ_AS.get(key, name) not in readers} <= REFUSED


def test_budget_settings_match_the_limits_of_a_budget():
    from sideband_agent import Budget

    assert set(BudgetSettings.model_fields) <= {one.name for one in attrs.fields(Budget)}


CONFIGS = sorted(
    path.relative_to(source).with_suffix("").as_posix().replace("/", ".")
    for layer in LAYERS[1:]
    for source in ROOT.glob(f"{layer}/src")
    for path in source.rglob("_config.py")
)


@pytest.mark.parametrize("module", CONFIGS)
def test_plugin_settings_are_read(module, trees):
    package = module.partition(".")[0]
    own = [tree for path, tree in trees.items() if package in path.parts]
    attributes = {node.attr for tree in own for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    models = [
        value
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module
    ]
    assert models
    unread = {f"{model.__name__}.{name}" for model in models for name in model.model_fields if name not in attributes}
    assert unread == set()


def test_skill_metadata_keys_are_read(read):
    page = (ROOT / "plugins" / "skills" / "README.md").read_text()
    keys = set(re.findall(r"`metadata: sideband\.(\w+)`", page))
    assert {"capabilities", "timeout", "isolation"} <= keys
    readers = {name for owner, name in read if owner == "skill"}
    assert {key for key in keys if READ_AS.get(f"SkillSpec.{key}", key) not in readers} == NOT_USED
