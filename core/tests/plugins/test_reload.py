"""A reload replaces a plugin in one step, or changes nothing."""

import sys
from textwrap import dedent

import anyio
import pytest
from sideband.hooks import Context, ToolCall, Verdict
from sideband.plugins import (
    Plugin,
    PluginDenied,
    PluginHost,
    PluginNotFound,
    PluginPolicy,
    PluginReloadFailed,
    PluginReloadRefused,
    State,
)

pytestmark = pytest.mark.anyio


def ops(extra=""):
    return "{ops}\n" + dedent(extra)


NOTES = """
    from sideband.hooks import hookimpl
    from ._numbers import NUMBER

    @hookimpl
    async def context(event):
        return (*event.messages, NUMBER)
"""
GUARD = """
    from sideband.hooks import Deny, hookimpl
    from ._numbers import NUMBER

    class Guard:
        @hookimpl
        def tool_call(self, event):
            return Deny(f"version {NUMBER}")

    def sideband_guards():
        return Guard
"""


@pytest.fixture
async def plugins(home, package):
    package.write_ops(1)
    async with PluginHost(home=home) as plugins:
        yield plugins


def modules(package):
    return {name: one for name, one in sys.modules.items() if name.partition(".")[0] == package.module}


async def test_reloaded_plugin_has_the_new_version(plugins, package):
    await plugins.load("op", "acme")
    package.write_ops(2)
    (record,) = await plugins.reload("acme")
    assert (record.version, record.state, plugins.why("acme")[0]) == ("2.0", State.ACTIVE, record)


WATCHER = """
    from sideband.hooks import hookimpl
    from ._numbers import NUMBER

    class Watcher:
        @hookimpl
        async def context(self, event):
            return (*event.messages, NUMBER)

    def sideband_hooks():
        return Watcher() if NUMBER % 2 else None
"""


async def test_plugin_can_lose_and_get_its_hooks_by_a_reload(home, package):
    package.write(1, {"plugin": WATCHER}, kinds=("hook",))
    async with PluginHost(home=home) as plugins:
        found = [plugins.hooks.has("context")]
        for number in (2, 3):
            package.write(number, {"plugin": WATCHER}, kinds=("hook",))
            await plugins.reload("acme")
            found.append(plugins.hooks.has("context"))
    assert found == [True, False, True]


async def test_trail_explains_the_reload(plugins, package):
    await plugins.load("op", "acme")
    package.write_ops(2)
    (record,) = await plugins.reload("acme")
    assert [one.state.value for one in record.trail] == [
        *("found", "imported", "validated", "active"),
        *("imported", "validated", "active"),
    ]
    assert (record.reason, record.decided_by) == ("reloaded, in place of 1.0", "reload")


async def test_trail_keeps_a_bounded_number_of_reloads(plugins, package):
    await plugins.load("op", "acme")
    for _ in range(12):
        (record,) = await plugins.reload("acme")
    assert len(record.trail) == 1 + 20 + 3


async def test_next_load_returns_the_new_plugin(plugins, package):
    old = await plugins.load("op", "acme")
    package.write_ops(2)
    await plugins.reload("acme")
    new = await plugins.load("op", "acme")
    assert (old.state, new.state) == (1, 2)


async def test_plugin_that_was_not_loaded_is_loaded(plugins, package):
    (record,) = await plugins.reload("acme")
    assert record.state is State.ACTIVE


async def test_changed_source_is_used_although_its_bytecode_looks_current(plugins, package):
    await plugins.load("op", "acme")
    for number in (2, 3):
        package.write_modules(number, {"plugin": ops()})
        await plugins.reload("acme")
        assert (await plugins.load("op", "acme")).state == number


async def test_modules_of_other_distributions_are_not_imported_again(plugins, package, site):
    other = site.module()
    package.write_ops(1, f"\nimport {other}")
    await plugins.load("op", "acme")
    kept = sys.modules[other]
    package.write_ops(2, f"\nimport {other}")
    await plugins.reload("acme")
    assert sys.modules[other] is kept


async def test_lifespan_of_the_replaced_plugin_is_exited(plugins, package):
    package.write_ops(1, EXITING)
    await plugins.load("op", "acme")
    exited = sys.modules[f"{package.module}.plugin"].EXITED
    package.write_ops(2)
    await plugins.reload("acme")
    with anyio.fail_after(5):
        await exited.wait()


EXITING = """
    import anyio

    EXITED = anyio.Event()

    @asynccontextmanager
    async def lifespan(ctx):
        yield {n}
        EXITED.set()
"""


async def test_all_loaded_plugins_of_the_distribution_are_reloaded(home, packages):
    package = packages(kinds=("op", "hook"))
    package.write(1, {"plugin": ops(NOTES)})
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "acme")
        package.write(2, {"plugin": ops(NOTES)})
        records = await plugins.reload("acme", kind="op")
        assert {one.label: one.version for one in records} == {"op.acme": "2.0", "hook.acme": "2.0"}
        assert (await plugins.hooks.update(Context(()))).messages == (2,)


async def test_guard_that_the_new_version_adds_is_active_at_once(home, packages):
    package = packages()
    package.write_ops(1)
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "acme")
        package.write(2, {"plugin": ops(GUARD)}, kinds=("op", "guard"))
        await plugins.reload("acme")
        assert (await plugins.hooks.decide(ToolCall("c1", "t", {}))).reason == "version 2"


async def test_repaired_plugin_becomes_usable(home, packages):
    package = packages(kinds=("guard",))
    package.write(1, {"plugin": "raise RuntimeError('broken')"})
    async with PluginHost(home=home) as plugins:
        package.write(2, {"plugin": GUARD})
        await plugins.reload("acme")
        assert (await plugins.hooks.decide(ToolCall("c1", "t", {}))).reason == "version 2"


BROKEN = {
    "syntax": ("def", "SyntaxError"),
    "import": ("raise RuntimeError('no')", "RuntimeError: no"),
    "exit": ("raise SystemExit(3)", "tried to exit"),
    "contribution": ("", "has no `sideband_ops`"),
    "backends": (ops("backends = ('curio',)"), "unknown name 'curio'"),
    "backend": (ops("backends = ('trio',)"), "supports trio"),
    "configuration": (ops("import pydantic\nclass Config(pydantic.BaseModel):\n    url: str"), "url"),
    "lifespan": (
        ops("@asynccontextmanager\nasync def lifespan(ctx):\n    raise RuntimeError('no start')\n    yield"),
        "no start",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_unusable_candidate_changes_nothing(plugins, package, case):
    old, kept = await plugins.load("op", "acme"), modules(package)
    source, problem = BROKEN[case]
    package.write(2, {"plugin": source})
    with pytest.raises(PluginReloadFailed, match=problem) as raised:
        await plugins.reload("acme")
    assert raised.value.code == "plugin.reload.failed"
    assert await plugins.load("op", "acme") is old
    assert modules(package) == kept
    assert {name: one.__spec__.name for name, one in kept.items()} == {name: name for name in kept}


async def test_failed_reload_is_in_the_trail(plugins, package):
    await plugins.load("op", "acme")
    package.write(2, {"plugin": "raise RuntimeError('no')"})
    with pytest.raises(PluginReloadFailed):
        await plugins.reload("acme")
    (record,) = plugins.why("acme")
    assert record.state is State.ACTIVE
    assert (record.decided_by, "RuntimeError: no" in record.reason) == ("reload", True)


async def test_lifespan_of_a_refused_candidate_is_exited(home, packages):
    package = packages(kinds=("op", "hook"))
    package.write(1, {"plugin": ops(NOTES)})
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "acme")
        invalid = NOTES.replace("context", "contxt")
        keeping = f"    import sys\n    sys.{package.module} = EXITED\n"
        package.write(2, {"plugin": ops(EXITING + keeping + invalid)})
        with pytest.raises(PluginReloadFailed, match="contxt"):
            await plugins.reload("acme", kind="op")
        assert vars(sys).pop(package.module).is_set()
        assert (await plugins.hooks.update(Context(()))).messages == (1,)


async def test_order_that_would_be_a_cycle_changes_nothing(home, packages):
    def notes(before):
        return dedent(NOTES).replace("@hookimpl", f"@hookimpl(before=[{before!r}])")

    other = packages("other", kinds=("hook",))
    other.write(1, {"plugin": notes("acme")})
    package = packages(kinds=("hook",))
    package.write(2, {"plugin": NOTES})
    async with PluginHost(home=home) as plugins:
        package.write(3, {"plugin": notes("other")})
        with pytest.raises(PluginReloadFailed, match="cycle"):
            await plugins.reload("acme")
        assert (await plugins.hooks.update(Context(()))).messages == (1, 2)


async def test_hook_that_is_reserved_for_guards_changes_nothing(home, packages):
    package = packages(kinds=("hook",))
    package.write(1, {"plugin": NOTES})
    async with PluginHost(home=home) as plugins:
        package.write(2, {"plugin": NOTES + RESERVED})
        with pytest.raises(PluginReloadFailed, match="reserved for guards"):
            await plugins.reload("acme")
        assert (await plugins.hooks.decide(ToolCall("c1", "t", {}))).verdict is Verdict.ALLOW


RESERVED = """
    @hookimpl
    def tool_call(event):
        return None
"""


async def test_uninstalled_distribution_changes_nothing(plugins, package, site):
    old = await plugins.load("op", "acme")
    package.write(2, {"plugin": ops()}, kinds=("provider",))
    with pytest.raises(PluginReloadRefused, match=r"test-acme 2.0 does not provide it anymore"):
        await plugins.reload("acme")
    assert await plugins.load("op", "acme") is old


async def test_incompatible_version_changes_nothing(plugins, package, site):
    old = await plugins.load("op", "acme")
    package.write_ops(2)
    info = site.folder / "test_acme-2.0.dist-info" / "METADATA"
    info.write_text(info.read_text() + "Requires-Dist: sideband-core>=99\n")
    with pytest.raises(PluginReloadFailed, match="requires sideband-core>=99"):
        await plugins.reload("acme")
    assert await plugins.load("op", "acme") is old


async def test_unknown_plugin_cannot_be_reloaded(plugins):
    with pytest.raises(PluginNotFound, match="acm"):
        await plugins.reload("acm")


async def test_denied_plugin_cannot_be_reloaded(home, package):
    package.write_ops(1)
    async with PluginHost(PluginPolicy(deny={"acme": "not here"}), home=home) as plugins:
        with pytest.raises(PluginDenied, match="not here"):
            await plugins.reload("acme")


async def test_plugin_passed_as_an_object_cannot_be_reloaded(home):
    inline = Plugin("hook", "notes", object())
    async with PluginHost(home=home, inline=[inline], autoload=False, load_at_start=False) as plugins:
        with pytest.raises(PluginReloadRefused, match="passed to the host as an object"):
            await plugins.reload("notes")


async def test_strict_host_reloads_nothing(home, package):
    package.write_ops(1)
    policy = PluginPolicy(strict=True, only=frozenset({"acme"}))
    async with PluginHost(policy, home=home) as plugins:
        with pytest.raises(PluginReloadRefused, match="strict"):
            await plugins.reload("acme")


@pytest.mark.parametrize("kind", ["store", "sandbox", "secrets"])
async def test_plugin_beside_one_that_is_in_use_for_all_of_the_host_is_refused(home, packages, kind):
    package = packages(kinds=("op", kind))
    package.write_ops(1)
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "acme")
        with pytest.raises(Exception, match="has no"):
            await plugins.load(kind, "acme")
        with pytest.raises(PluginReloadRefused, match=f"{kind}.acme belongs to its distribution"):
            await plugins.reload("acme", kind="op")


async def test_package_with_a_plugin_of_another_distribution_is_refused(home, package, site):
    package.write_ops(1)
    site.distribution("intruder", {"sideband.v1.op": {"other": f"{package.module}.plugin"}})
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginReloadRefused, match="intruder has a plugin in its package"):
            await plugins.reload("acme")


async def test_namespace_package_is_refused(plugins, package):
    (package.folder / "__init__.py").unlink()
    await plugins.load("op", "acme")
    with pytest.raises(PluginReloadRefused, match="namespace package"):
        await plugins.reload("acme")


async def test_compiled_module_in_use_is_refused(plugins, package):
    import _json

    await plugins.load("op", "acme")
    sys.modules[f"{package.module}._speed"] = compiled = type(sys)("speed")
    compiled.__spec__ = _json.__spec__
    if not str(compiled.__spec__.origin).endswith(".so"):
        pytest.skip("the standard library is built in")
    with pytest.raises(PluginReloadRefused, match="compiled code"):
        await plugins.reload("acme")
    del sys.modules[f"{package.module}._speed"]


async def test_compiled_module_of_the_candidate_is_refused(plugins, package):
    old = await plugins.load("op", "acme")
    package.write_ops(2, "\ntry:\n    from . import _speed\nexcept ImportError:\n    pass")
    from importlib.machinery import EXTENSION_SUFFIXES

    (package.folder / f"_speed{EXTENSION_SUFFIXES[-1]}").write_bytes(b"")
    with pytest.raises(PluginReloadRefused, match="_speed` is compiled code"):
        await plugins.reload("acme")
    assert await plugins.load("op", "acme") is old


async def test_two_kinds_of_different_distributions_need_a_kind(home, package, packages, site):
    other = packages("acme", kinds=("provider",))
    (site.folder / other.module).mkdir()
    site.distribution("other", {"sideband.v1.provider": {"acme": f"{other.module}.plugin"}})
    package.write_ops(1)
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginReloadRefused, match="several distributions") as raised:
            await plugins.reload("acme")
    assert raised.value.hint == "name one: `op.acme`, `provider.acme`"


async def test_import_that_does_not_end_changes_nothing(home, package):
    package.write_ops(1)
    async with PluginHost(home=home, import_seconds=0.3) as plugins:
        old, kept = await plugins.load("op", "acme"), modules(package)
        package.write(2, {"plugin": "import sys, threading\nsys.acme = threading.Event()\nsys.acme.wait()"})
        with pytest.raises(PluginReloadFailed, match=r"timed out after 0\.3 s"):
            await plugins.reload("acme")
        assert modules(package) == kept
        package.write_ops(3)
        with pytest.raises(PluginReloadRefused, match="has not ended"):
            await plugins.reload("acme")
        vars(sys).pop("acme").set()
        with anyio.fail_after(5):
            while True:
                try:
                    await plugins.reload("acme")
                    break
                except PluginReloadRefused:
                    await anyio.lowlevel.checkpoint()
        assert (old.state, (await plugins.load("op", "acme")).state) == (1, 3)
        assert set(modules(package)) == set(kept)
