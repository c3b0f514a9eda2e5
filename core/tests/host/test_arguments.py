"""A mistake in the arguments of `Host` and `Plugin` is reported where it is written, with the remedy."""

import types
from pathlib import Path

import pytest
import sideband_store_sqlite
from sideband import ConfigurationError, Host, Plugin, StoreConflict
from sideband.ops import CapabilityInvalid, Grant
from sideband.plugins import PluginInvalid

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"home": "x"}, r"`home`: expected a Path, got a str: write `Path\('x'\)`"),
        ({"skill_dirs": ["x"]}, r"`skill_dirs`: expected a Path, got a str: write `Path\('x'\)`"),
        ({"skill_dirs": "skills"}, r"`skill_dirs`: expected a Path, got a str: write `Path\('skills'\)`"),
        ({"skill_dirs": Path("skills")}, "`skill_dirs`: expected a list, got a PosixPath"),
        ({"grants": ["sql"]}, "`grants`: expected capabilities by skill, got a list"),
        ({"plugins": Plugin("tool", "acme", types)}, "`plugins`: expected a list, got a Plugin"),
        ({"plugins": [types]}, "`plugins`: expected a Plugin, got a module"),
        ({"settings": Path("sideband.toml")}, "`settings` must be nested tables or LoadedSettings, got a PosixPath"),
    ],
)
def test_host_rejects_an_argument_of_another_type(arguments, problem, tmp_path):
    with pytest.raises(TypeError, match=problem):
        Host(**{"home": tmp_path, **arguments})


async def test_host_that_is_not_open_says_how_to_open_it(tmp_path):
    host = Host(home=tmp_path)
    with pytest.raises(AttributeError, match=r"open it first: `async with Host\(…\) as host:`"):
        await host.op("crypto.random", {"length": 2})
    async with host:
        with pytest.raises(AttributeError, match=r"`Host` has no attribute `opp`$"):
            _ = host.opp


def test_plugin_rejects_an_unknown_kind():
    with pytest.raises(ValueError, match=r"unknown kind of plugin 'stor' \(did you mean `store`\?\)"):
        Plugin("stor", "sqlite", sideband_store_sqlite)


async def test_text_in_place_of_a_list_of_capabilities_is_rejected(tmp_path):
    with pytest.raises(CapabilityInvalid, match="`crypto`: expected a list of capabilities, got a text"):
        Grant.parse("crypto")
    async with Host(home=tmp_path) as host:
        with pytest.raises(CapabilityInvalid, match="`crypto`: expected a list of capabilities, got a text"):
            await host.op("crypto.hash", {"data": "x"}, grants="crypto")


async def test_host_without_autoload_names_the_store_to_pass(tmp_path):
    with pytest.raises(ConfigurationError, match="`autoload=False` ignores installed plugins") as caught:
        async with Host(home=tmp_path, autoload=False):
            pass
    assert 'Plugin("store", "sqlite", sideband_store_sqlite.plugin)' in caught.value.hint


async def test_package_that_is_passed_as_a_plugin_is_rejected_with_the_name_of_its_module(tmp_path):
    with pytest.raises(PluginInvalid, match=r"use its module `sideband_store_sqlite\.plugin`") as caught:
        async with Host(home=tmp_path, autoload=False, plugins=[Plugin("store", "sqlite", sideband_store_sqlite)]):
            pass
    assert "author" not in caught.value.hint


def test_conflict_of_a_store_needs_only_the_key():
    assert StoreConflict("notes").message == "`notes` has changed since it was read"
    known = StoreConflict("notes", expected=0, found=2)
    assert (known.message, known.expected, known.found) == ("`notes` is at version 2, not 0", 0, 2)
    assert known.retryable
