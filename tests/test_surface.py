"""Nothing is documented without effect: each hook is emitted, and each setting and metadata key is read."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import attrs
import pytest
from pydantic import BaseModel
from sideband.hooks import HOOK_SPECS
from sideband.settings import AgentSettings, BudgetSettings, CompactionSettings, Policy, Settings

ROOT = Path(__file__).parents[1]
LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
# The agent does not dispatch it yet; tests/agent/test_hooks.py holds an expected failure for it.
NOT_EMITTED = {"routes"}
# Parsed, and reported as not used yet.
NOT_USED = {"connections"}
# Its keys are refused, so the settings themselves read it.
REFUSED = {"Settings.dist"}
# A name that is read under another one.
READ_AS = {"Policy.isolation": "tier", "SkillSpec.isolation": "alone"}


@cache
def trees():
    """Each module outside the places that declare events and settings."""
    sources = [path for layer in LAYERS for source in ROOT.glob(f"{layer}/src") for path in source.rglob("*.py")]
    return {path: ast.parse(path.read_text()) for path in sources}


def used(kind, name_of, *, but):
    return {
        name_of(node)
        for path, tree in trees().items()
        if not any(part in path.as_posix() for part in but)
        for node in ast.walk(tree)
        if isinstance(node, kind)
    }


@cache
def called():
    def name_of(call):
        return getattr(call.func, "id", getattr(call.func, "attr", ""))

    return used(ast.Call, name_of, but=("sideband/hooks/",))


@cache
def read():
    """Each attribute that is read, with the last name of what it is read from: ``policy.timeout``."""

    def pair_of(node):
        owner = node.value.func if isinstance(node.value, ast.Call) else node.value
        return getattr(owner, "id", getattr(owner, "attr", "")).removeprefix("_"), node.attr

    return used(ast.Attribute, pair_of, but=("sideband/settings/_agent.py", "sideband/settings/_policy.py"))


def test_every_hook_is_emitted_by_the_kernel_the_agent_or_a_plugin():
    silent = {hook for hook, spec in HOOK_SPECS.items() if spec.event.__name__ not in called()}
    assert silent == NOT_EMITTED


@pytest.mark.parametrize(
    ("table", "owners"),
    [
        (Settings, {"settings"}),
        (Policy, {"policy"}),
        (AgentSettings, {"settings"}),
        (CompactionSettings, {"compaction", "settings"}),
    ],
)
def test_every_setting_is_read(table, owners):
    readers = {name for owner, name in read() if owner in owners}
    keys = {f"{table.__name__}.{name}": name for name in table.model_fields}
    assert {key for key, name in keys.items() if READ_AS.get(key, name) not in readers} <= REFUSED


def test_every_limit_of_the_budget_is_one_that_an_agent_has():
    from sideband_agent import Budget

    assert set(BudgetSettings.model_fields) <= {one.name for one in attrs.fields(Budget)}


CONFIGS = sorted(
    path.relative_to(source).with_suffix("").as_posix().replace("/", ".")
    for layer in LAYERS[1:]
    for source in ROOT.glob(f"{layer}/src")
    for path in source.rglob("_config.py")
)


@pytest.mark.parametrize("module", CONFIGS)
def test_every_setting_of_a_plugin_is_read(module):
    package = module.partition(".")[0]
    own = [tree for path, tree in trees().items() if package in path.parts]
    attributes = {node.attr for tree in own for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    models = [
        value
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module
    ]
    assert models
    unread = {f"{model.__name__}.{name}" for model in models for name in model.model_fields if name not in attributes}
    assert unread == set()


def test_every_metadata_key_of_a_skill_is_read():
    page = (ROOT / "plugins" / "skills" / "README.md").read_text()
    keys = set(re.findall(r"`metadata: sideband\.(\w+)`", page))
    assert {"capabilities", "timeout", "isolation"} <= keys
    readers = {name for owner, name in read() if owner == "skill"}
    assert {key for key in keys if READ_AS.get(f"SkillSpec.{key}", key) not in readers} == NOT_USED
