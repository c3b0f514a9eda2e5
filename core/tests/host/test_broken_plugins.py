"""Broken plugins: each is reported where its kind is used, and others are used."""

import sys
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from sideband import Host
from sideband.broker import Ops
from sideband.calls import ChosenSandbox, SkillCatalog
from sideband.loading import LoadedSkills, SkillProblem, SkillSpec
from sideband.plugins import Plugin, PluginConflict, PluginHost, PluginInvalid
from sideband.settings import SkillFolders
from sideband.store import StoreSpec
from sideband.workers import Isolation

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def loader(name, load, distribution="inline"):
    """Return a plugin with a loader whose ``load`` calls a function."""

    async def load_all(sources):
        return load()

    one = SimpleNamespace(name=name, load=load_all)
    return Plugin("loader", name, SimpleNamespace(sideband_loaders=lambda: [one]), distribution)


def notes():
    return LoadedSkills((SkillSpec(name="notes", key="notes", description="", source=Path("notes")),))


def fail():
    raise RuntimeError("bad luck")


async def load(tmp_path, *plugins):
    """Return the skills and the problems that a catalog with these loaders finds."""
    async with PluginHost(home=tmp_path, inline=plugins, autoload=False) as host:
        return await SkillCatalog(host, SkillFolders()).all()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (fail, "RuntimeError: bad luck"),
        (sys.exit, "it tried to exit the program (SystemExit: None)"),
        (lambda: None, "NoneType"),
        (list, "AttributeError"),
        (lambda: LoadedSkills(("notes",)), "objects that are not skills"),
        (lambda: LoadedSkills(problems=("none",)), "objects that are not skills"),
        (lambda: LoadedSkills(problems=(SkillProblem([], "acme", "no"),)), "TypeError: unhashable"),
    ],
)
async def test_loader_that_fails_is_reported_and_the_skills_of_others_are_loaded(tmp_path, broken, reason):
    loaded = await load(tmp_path, loader("acme", broken), loader("good", notes))
    assert [one.name for one in loaded.skills] == ["notes"]
    ((source, code, text),) = [(one.source, one.code, one.reason) for one in loaded.problems]
    assert (source, code) == ("loader acme", "plugin.failed")
    assert "the loader `acme` failed" in text
    assert reason in text


async def test_loaders_in_conflict_are_reported_once(tmp_path):
    rivals = [loader("acme", notes, distribution) for distribution in ("first", "second")]
    loaded = await load(tmp_path, *rivals, loader("good", notes))
    assert [one.name for one in loaded.skills] == ["notes"]
    assert [(one.source, one.code) for one in loaded.problems] == [("loader acme", "plugin.conflict")]


async def test_skill_packages_in_conflict_are_reported(tmp_path):
    rivals = [Plugin("skill", "acme", None, distribution) for distribution in ("first", "second")]
    loaded = await load(tmp_path, *rivals)
    assert [one.source for one in loaded.problems] == ["package first", "package second"]
    assert all("first 0" in one.reason and "second 0" in one.reason for one in loaded.problems)
    assert all(isinstance(one, SkillProblem) and one.fatal for one in loaded.problems)


def rivals(kind):
    return [Plugin(kind, "acme", SimpleNamespace(), distribution) for distribution in ("first", "second")]


@pytest.mark.parametrize("kind", ["hook", "guard"])
async def test_hooks_and_guards_in_conflict_are_reported_at_start(tmp_path, caplog, kind):
    async with PluginHost(home=tmp_path, inline=rivals(kind), autoload=False):
        pass
    (text,) = [text for text in caplog.messages if f"{kind} `acme` is claimed by " in text]
    assert "first 0" in text
    assert "second 0" in text


async def test_sandboxes_in_conflict_are_reported_by_the_probe(tmp_path):
    async with PluginHost(home=tmp_path, inline=rivals("sandbox"), autoload=False) as host:
        sandbox = ChosenSandbox(host, Isolation.FULL)
        assert any("sandbox `acme` is claimed by first 0" in hint for hint in (await sandbox.probe()).hints)
        await sandbox.close()


async def test_providers_in_conflict_are_listed_and_refused(tmp_path):
    async with PluginHost(home=tmp_path, inline=rivals("provider"), autoload=False) as host:
        ops = Ops(host)
        assert await ops.providers() == ("acme",)
        with pytest.raises(PluginConflict):
            await ops.provider("acme")


def opening(error):
    """Return a function that opens a store and raises."""

    @asynccontextmanager
    async def open_store(folder):
        raise error
        yield

    return open_store


@pytest.mark.parametrize(
    ("opened", "problem"),
    [
        (opening(RuntimeError("no luck")), "it cannot be opened: RuntimeError: no luck"),
        (opening(SystemExit(9)), "it cannot be opened: it tried to exit the program"),
        (lambda folder: None, "it cannot be opened: AttributeError"),
        (lambda folder: nullcontext("text"), "its `open` must yield a Store, got a str"),
    ],
)
async def test_error_of_a_store_that_cannot_be_opened_names_it(tmp_path, opened, problem):
    store = SimpleNamespace(sideband_stores=lambda: [StoreSpec(name="acme", open=opened)])
    with pytest.raises(PluginInvalid) as caught:
        async with Host(home=tmp_path, plugins=[Plugin("store", "acme", store)], autoload=False):
            pass
    assert caught.value.message.startswith("store `acme`: ")
    assert problem in caught.value.message
