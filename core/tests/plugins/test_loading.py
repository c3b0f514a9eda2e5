import sys
import threading
from types import SimpleNamespace

import anyio
import pytest
from sideband.plugins import (
    Plugin,
    PluginError,
    PluginHost,
    PluginHostClosed,
    PluginImportFailed,
    PluginIncompatible,
    PluginInvalid,
    PluginPolicy,
    State,
)

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def failure(home, kind="op", name="tidal", *, inline=(), **settings) -> PluginError:
    """Load a plugin that must fail, and return its error. The host and another plugin must not be affected."""
    async with PluginHost(home=home, inline=inline, **settings) as plugins:
        with pytest.raises(PluginError) as caught:
            await plugins.load(kind, name)
        with pytest.raises(type(caught.value)):
            await plugins.load(kind, name)
        if not inline:
            await plugins.load("op", "neighbor")
        (record,) = plugins.why(name, kind=kind)
        assert not record.state.usable
        assert record.reason
        assert caught.value.record is record
    return caught.value


async def test_op_plugin_is_imported_on_first_use(site, home):
    module = site.echo("tidal")
    async with PluginHost(home=home) as plugins:
        assert "tidal" in plugins.names("op")
        assert module not in sys.modules
        loaded = await plugins.ensure_family("tidal")
        assert module in sys.modules
    assert [spec.name for spec in loaded.contribution.ops] == ["tidal.say"]
    assert loaded.record.state is State.ACTIVE


async def test_entry_point_may_name_a_nested_object(site, home):
    module = site.module(
        """
        from types import SimpleNamespace
        class holder:
            one = SimpleNamespace(name="tidal", models=print, stream=print)
            nested = SimpleNamespace(sideband_providers=lambda: [holder.one])
        """
    )
    site.distribution(
        "test-tidal", {"sideband.v1.provider": {"tidal": f"{module} : holder.nested [extra]"}}, extras=["extra"]
    )
    async with PluginHost(home=home) as plugins:
        assert (await plugins.load("provider", "tidal")).contribution[0].name == "tidal"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("raise ValueError('boom')", "ValueError: boom"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "tried to exit the program"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
    ],
)
async def test_exception_of_an_import_fails_only_the_plugin(site, home, source, problem):
    site.echo("neighbor")
    site.plugin("op", "tidal", source)
    error = await failure(home)
    assert isinstance(error, PluginImportFailed)
    assert problem in error.message
    assert "test-tidal 1.0" in error.message
    assert error.__cause__ is not None


async def test_entry_point_that_names_a_missing_module_is_shown_as_the_cause(home, site):
    site.distribution("acme", {"sideband.v1.op": {"acme": "sideband_acme.missing"}})
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginImportFailed) as caught:
            await plugins.load("op", "acme")
    expected = 'correct the entry point `acme = "sideband_acme.missing"` of acme, or reinstall it'
    assert caught.value.hint.startswith(expected)


async def test_entry_point_with_a_missing_object_is_reported(site, home):
    site.echo("neighbor")
    module = site.module()
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": f"{module}:missing"}})
    assert "missing" in (await failure(home)).message


async def test_hanging_import_times_out(site, home):
    site.echo("neighbor")
    site.plugin("op", "tidal", "import sideband_test_gate; sideband_test_gate.gate.wait()")
    sys.modules["sideband_test_gate"] = gate = SimpleNamespace(gate=threading.Event())
    try:
        error = await failure(home, import_seconds=0.5)
    finally:
        gate.gate.set()
        del sys.modules["sideband_test_gate"]
    assert "timed out after 0.5 s" in error.message


async def test_plugin_that_fails_at_startup_does_not_affect_others(site, home):
    site.plugin("hook", "surf", "raise ValueError('boom')")
    site.plugin("guard", "wall", "raise SystemExit")
    site.echo("neighbor")
    async with PluginHost(home=home) as plugins:
        assert [plugins.why(name)[0].state for name in ("surf", "wall")] == [State.FAILED, State.FAILED]
        assert await plugins.load("op", "neighbor")


@both_backends
async def test_plugin_for_another_event_loop_is_incompatible(site, home, anyio_backend_name):
    other = {"asyncio": "trio", "trio": "asyncio"}[anyio_backend_name]
    site.echo("neighbor", extra=f"backends = [{anyio_backend_name!r}]")
    site.echo("tidal", extra=f"backends = ({other!r},)")
    error = await failure(home)
    assert isinstance(error, PluginIncompatible)
    assert f"it supports {other}, but the host runs on {anyio_backend_name}" in error.message


@pytest.mark.parametrize("backends", ["'trio'", "3", "('curio',)"])
async def test_invalid_backends_are_rejected(site, home, backends):
    site.echo("neighbor")
    site.echo("tidal", extra=f"backends = {backends}")
    assert isinstance(await failure(home), PluginInvalid)


@both_backends
async def test_concurrent_loads_import_the_plugin_once(site, home):
    sys.modules["sideband_test_counter"] = counter = SimpleNamespace(imports=0)
    site.echo("tidal", extra="import sideband_test_counter; sideband_test_counter.imports += 1")
    loaded = []

    async def load(plugins):
        loaded.append(await plugins.load("op", "tidal"))

    async with PluginHost(home=home) as plugins, anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(load, plugins)
    del sys.modules["sideband_test_counter"]
    assert counter.imports == 1
    assert len({id(one) for one in loaded}) == 1


@both_backends
async def test_cancelling_the_first_caller_does_not_cancel_the_load(site, home):
    sys.modules["sideband_test_gate"] = gate = SimpleNamespace(begun=threading.Event(), gate=threading.Event())
    site.echo("tidal", extra="import sideband_test_gate as g; g.begun.set(); g.gate.wait(10)")
    loaded = []

    async def load(plugins):
        loaded.append(await plugins.load("op", "tidal"))

    async with PluginHost(home=home) as plugins:
        async with anyio.create_task_group() as first:
            first.start_soon(load, plugins)
            await anyio.to_thread.run_sync(gate.begun.wait)
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as second:
            second.start_soon(load, plugins)
            gate.gate.set()
    del sys.modules["sideband_test_gate"]
    assert len(loaded) == 1


@both_backends
async def test_exit_of_the_host_does_not_wait_for_an_import(site, home):
    sys.modules["sideband_test_gate"] = gate = SimpleNamespace(begun=threading.Event(), gate=threading.Event())
    site.echo("tidal", extra="import sideband_test_gate as g; g.begun.set(); g.gate.wait(10)")
    errors = []

    async def load(plugins):
        try:
            await plugins.load("op", "tidal")
        except PluginHostClosed as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        async with PluginHost(home=home) as plugins:
            tasks.start_soon(load, plugins)
            await anyio.to_thread.run_sync(gate.begun.wait)
        gate.gate.set()
    del sys.modules["sideband_test_gate"]
    assert len(errors) == 1


async def test_load_without_activate_does_not_activate(site, home):
    site.echo("tidal", extra="async def lifespan(ctx): raise RuntimeError('entered')")
    async with PluginHost(home=home) as plugins:
        examined = await plugins.load("op", "tidal", activate=False)
        assert examined.record.state is State.VALIDATED


async def test_host_that_is_not_entered_rejects_load(home):
    inline = [
        Plugin(
            "provider",
            "tidal",
            SimpleNamespace(sideband_providers=lambda: [SimpleNamespace(name="tidal", models=print, stream=print)]),
        )
    ]
    plugins = PluginHost(home=home, inline=inline, autoload=False)
    with pytest.raises(PluginHostClosed):
        await plugins.load("provider", "tidal")
    async with plugins:
        pass
    with pytest.raises(PluginHostClosed):
        await plugins.load("provider", "tidal")


@both_backends
async def test_exception_of_the_body_is_not_wrapped(home):
    with pytest.raises(KeyError, match="mine"):
        async with PluginHost(home=home, autoload=False):
            raise KeyError("mine")


async def test_hosts_share_no_state(site, home):
    site.echo("tidal")
    async with PluginHost(home=home) as one, PluginHost(PluginPolicy(deny={"tidal": "no"}), home=home) as other:
        await one.load("op", "tidal")
        assert other.why("tidal")[0].state is State.DENIED


@both_backends
@pytest.mark.parametrize("error", [SystemExit(7), GeneratorExit(), BaseExceptionGroup("", [SystemExit(7)])])
async def test_guard_that_exits_when_it_is_created_fails_and_denies(home, error):
    class Watch:
        def __init__(self):
            raise error

    async with PluginHost(home=home, inline=[Plugin("guard", "watch", Watch)], autoload=False) as plugins:
        (record,) = plugins.why("watch", kind="guard")
        assert record.state is State.FAILED
        assert type(getattr(error, "exceptions", [error])[0]).__name__ in record.reason
        assert [one.plugin for one in plugins.hooks.order("op_call")] == ["watch"]


async def test_host_without_loading_at_start_imports_nothing_until_it_is_requested(site, home):
    module = site.plugin("hook", "tidal", "from sideband import hookimpl\n@hookimpl\ndef effect(event): pass")
    async with PluginHost(home=home, load_at_start=False) as plugins:
        assert plugins.why("tidal")[0].state is State.FOUND
        assert module not in sys.modules
        await plugins.load("hook", "tidal")
        assert module in sys.modules


async def test_plugin_whose_import_failed_was_never_imported(site, home):
    site.plugin("op", "tidal", "raise RuntimeError('no luck')")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginImportFailed):
            await plugins.load("op", "tidal")
        (record,) = plugins.why("tidal")
    assert [step.state for step in record.trail] == [State.FOUND, State.FAILED]
    assert record.load_ms is None


async def test_names_of_a_kind_take_the_same_work_for_any_number_of_other_plugins(home, count_instructions):
    work = []
    for number in (1, 200):
        inline = [Plugin("tool", f"idle{one}", SimpleNamespace(sideband_tools=list)) for one in range(number)]
        inline.append(Plugin("provider", "near", SimpleNamespace(sideband_providers=list)))
        async with PluginHost(home=home, inline=inline, autoload=False) as plugins:
            work.append(count_instructions(lambda plugins=plugins: plugins.names("provider", broken=True)))
            assert plugins.names("provider") == ("near",)
    assert work[0] == work[1], "keep the records of each kind together: each model call looks its provider up"
