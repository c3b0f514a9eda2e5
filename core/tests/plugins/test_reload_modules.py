"""Code that runs finds the modules, classes and annotations of its own version, also while another one is imported."""

import builtins
import sys
import threading
from contextlib import asynccontextmanager
from textwrap import dedent
from types import ModuleType

import anyio
import pytest
from sideband import Host
from sideband.plugins import Plugin, PluginHost, PluginInvalid, PluginReloadFailed, PluginReloadRefused

pytestmark = pytest.mark.anyio

LATE = """
    import typing

    class Empty(BaseModel):
        pass

    class Answer(BaseModel):
        part: "Part"

    class Outer:
        class Node:
            child: "Part"

    class Part(BaseModel):
        n: int

    @op("{name}.hints")
    async def hints(params: Empty, ctx) -> bool:
        return typing.get_type_hints(Outer.Node)["child"] is Part

    @op("{name}.model")
    async def model(params: Empty, ctx) -> bool:
        return type(Answer.model_validate({"part": {"n": 1}}).part) is Part

    @op("{name}.absolute")
    async def absolute(params: Empty, ctx) -> bool:
        import {module}.plugin
        return {module}.plugin.Part is Part

    @op("{name}.absolute_from")
    async def absolute_from(params: Empty, ctx) -> bool:
        from {module}.plugin import Part as found
        return found is Part

    @op("{name}.neighbor")
    async def neighbor(params: Empty, ctx) -> bool:
        from . import _new
        return _new.PART is Part

    def sideband_ops():
        return OpFamily(name="{name}", ops=(pair, hints, model, absolute, absolute_from, neighbor))
"""
SLOW = """
import sys
sys.acme[0].set()
sys.acme[1].wait(10)
"""
USES = ["hints", "model", "absolute", "absolute_from", "neighbor"]


@pytest.fixture
def signals(monkeypatch):
    """Two events: the candidate sets the first one while it is imported, and waits for the second one."""
    monkeypatch.setattr(sys, "acme", (threading.Event(), threading.Event()), raising=False)
    yield sys.acme
    sys.acme[1].set()


@pytest.fixture
def late(package):
    """Return a function that writes a version of a plugin that imports late."""

    def write(number, begin=""):
        source = dedent(begin) + "{ops}" + dedent(LATE).replace("{module}", package.module)
        package.write(number, {"plugin": source, "_new": "from .plugin import Part\nPART = Part"})

    return write


async def until(condition):
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - threads set what it waits for
            await anyio.sleep(0.001)  # a loop that never waits would starve other threads


@asynccontextmanager
async def reloading(plugins, signals):
    """Reload a plugin, and run the block while its candidate is imported."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(plugins.reload, "acme")
        await until(signals[0].is_set)
        try:
            yield
        finally:
            signals[1].set()


@pytest.mark.parametrize("use", USES)
async def test_call_finds_what_belongs_to_it_while_a_candidate_is_imported(home, late, signals, use):
    late(1)
    async with Host(home=home) as host:
        await host.plugins.load("op", "acme")
        late(2, SLOW)
        async with reloading(host, signals):
            assert await host.op(f"acme.{use}", {})
            assert not signals[1].is_set()


@pytest.mark.parametrize("use", USES)
async def test_call_finds_what_belongs_to_it_after_its_plugin_was_replaced(home, package, late, use):
    late(1)
    async with Host(home=home) as host:
        await host.plugins.load("op", "acme")
        old = getattr(sys.modules[f"{package.module}.plugin"], use)
        host.hooks.editions.current.users += 1  # a call that runs
        late(2)
        await host.reload("acme")
        assert await old(None, None)


@pytest.mark.parametrize("use", USES)
async def test_candidate_finds_what_belongs_to_it_before_it_replaces_another(home, late, use):
    using = f"""
    @asynccontextmanager
    async def lifespan(ctx):
        assert await {use}(None, None)
        yield
    """
    late(1)
    async with Host(home=home) as host:
        await host.plugins.load("op", "acme")
        late(2, "")
        path = next(home.parent.glob("site/*/plugin.py"))
        path.write_text(path.read_text() + dedent(using))
        (record,) = await host.reload("acme")
        assert record.version == "2.0"


async def test_imports_are_as_before_after_a_reload(home, late):
    before = builtins.__import__
    late(1)
    async with Host(home=home) as host:
        await host.op("acme.pair", {})
        late(2)
        await host.reload("acme")
        await until(lambda: builtins.__import__ is before)


async def test_program_that_has_imported_a_replaced_module_imports_the_newest_neighbors_late(home, package):
    package.write_ops(1)
    async with Host(home=home) as host:
        await host.op("acme.pair", {})
        mine = sys.modules[f"{package.module}.plugin"]
        package.write_ops(2)
        await host.reload("acme")
        await until(lambda: mine.__name__ == f"{package.module}.plugin")
        exec("from ._late import NUMBER as LATE", vars(mine))
        assert mine.LATE == 2


async def test_module_of_another_package_under_a_name_of_the_plugin_keeps_its_own_name(home, package, monkeypatch):
    vendored = ModuleType("vendored")
    vendored.__spec__ = spec = builtins.__spec__
    package.write_ops(1)
    async with Host(home=home) as host:
        await host.op("acme.pair", {})
        monkeypatch.setitem(sys.modules, f"{package.module}.vendored", vendored)
        package.write_ops(2)
        await host.reload("acme")
        assert (vendored.__name__, vendored.__spec__) == ("vendored", spec)


@pytest.mark.parametrize("end", ["", "raise ValueError('too late')"])
async def test_import_that_goes_on_after_its_time_changes_nothing(home, package, signals, end):
    package.write_ops(1)
    async with PluginHost(home=home, import_seconds=0.3) as plugins:
        await plugins.load("op", "acme")
        names = {name for name in sys.modules if name.startswith(package.module)}
        package.write_modules(2, {"plugin": f"{SLOW}\nfrom . import _new, _late\n{end}\n{{ops}}", "_new": ""})
        with pytest.raises(PluginReloadFailed, match="timed out"):
            await plugins.reload("acme")
        running = sys.modules[package.module]
        exec("from . import _late", vars(running))
        kept = running._late
        signals[1].set()
        await until(lambda: not _is_busy(package.module))
        assert not hasattr(running, "_new")
        assert sys.modules[kept.__name__] is kept
        assert {name for name in sys.modules if name.startswith(package.module)} == names | {kept.__name__}


def _is_busy(package):
    from sideband.plugins import _import_turns

    return package in _import_turns._second


PROVIDER = """
from ._numbers import NUMBER

def sideband_providers():
    raise ValueError(f"version {NUMBER}")
"""


async def test_plugin_that_is_first_loaded_during_a_reload_is_of_one_version(home, packages, signals, site):
    package = packages()
    package.write(1, {"plugin": "{ops}", "models": PROVIDER})
    info = next(site.folder.glob("test_acme-*")) / "entry_points.txt"
    more = f"\n[sideband.v1.provider]\nacme = {package.module}.models\n"
    info.write_text(info.read_text() + more)
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "acme")
        failed = f"from ._numbers import NUMBER\n{SLOW}\nraise ValueError('no')"
        package.write_modules(2, {"plugin": failed, "models": PROVIDER})

        async def load():
            with pytest.raises(PluginInvalid, match="version 1"):
                await plugins.load("provider", "acme")

        async def fail():
            with pytest.raises(PluginReloadFailed):
                await plugins.reload("acme", kind="op")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            await until(signals[0].is_set)
            tasks.start_soon(load)
            await anyio.wait_all_tasks_blocked()
            signals[1].set()


@pytest.mark.parametrize("is_object", [False, True])
async def test_plugin_that_another_host_of_the_process_uses_is_refused(home, tmp_path, package, is_object):
    package.write_ops(1)
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "acme")
        inline = [Plugin("op", "acme", sys.modules[f"{package.module}.plugin"])] if is_object else []
        async with PluginHost(home=tmp_path, inline=inline, autoload=not is_object) as other:
            await other.load("op", "acme")
            with pytest.raises(PluginReloadRefused, match="another host of this process uses it"):
                await plugins.reload("acme")
        await plugins.reload("acme")


LOADER = """
from types import SimpleNamespace
from ._numbers import NUMBER

async def load(sources):
    return NUMBER

def sideband_loaders():
    return [SimpleNamespace(name="acme", load=load)]
"""


@pytest.fixture
def two(package, site):
    """Return a function that writes a version of two plugins, one of which signals that it is imported."""

    def write(number, **modules):
        package.write(number, {"plugin": "{ops}", "skills": LOADER, **modules})
        info = next(site.folder.glob("test_acme-*")) / "entry_points.txt"
        info.write_text(f"{info.read_text()}\n[sideband.v1.loader]\nacme = {package.module}.skills\n")

    return write


async def test_reload_waits_for_a_plugin_of_its_distribution_that_is_being_loaded(home, two, signals):
    two(1, skills=SLOW + LOADER)
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "acme")
        found = []

        async def reload():
            found.extend(await plugins.reload("acme", kind="op"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(plugins.load, "loader", "acme")
            await until(signals[0].is_set)
            tasks.start_soon(reload)
            await anyio.wait_all_tasks_blocked()
            signals[1].set()
        assert {one.label for one in found} == {"op.acme", "loader.acme"}


async def test_plugin_that_another_host_is_importing_is_refused(home, tmp_path, two, signals):
    two(1, skills=SLOW + LOADER)
    async with PluginHost(home=home) as plugins, PluginHost(home=tmp_path) as other, anyio.create_task_group() as tasks:
        await plugins.load("op", "acme")
        tasks.start_soon(other.load, "loader", "acme")
        await until(signals[0].is_set)
        with pytest.raises(PluginReloadRefused, match="another import of it has not ended"):
            await plugins.reload("acme", kind="op")
        signals[1].set()


async def test_plugins_can_be_loaded_while_an_import_goes_on_after_its_time(home, package, two, signals):
    two(1)
    async with PluginHost(home=home, import_seconds=1) as plugins:
        await plugins.load("op", "acme")
        package.write_modules(2, {"plugin": SLOW, "skills": LOADER})
        with pytest.raises(PluginReloadFailed, match="timed out"):
            await plugins.reload("acme", kind="op")
        loaded = await plugins.load("loader", "acme")
        assert await loaded.contribution[0].load(()) == 1
        signals[1].set()
        await until(lambda: not _is_busy(package.module))


async def test_import_that_was_abandoned_before_it_began_imports_nothing(package):
    from sideband.plugins._import_turns import ModulesBusy
    from sideband.plugins._modules import SecondImport

    importing = SecondImport((package.module,))
    importing.begin()
    importing.abandon()
    with pytest.raises(ModulesBusy):
        importing.run(pytest.fail)
