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
    StrictPluginError,
)

pytestmark = pytest.mark.anyio


async def failure(home, kind="op", name="tidal", *, inline=(), **settings) -> PluginError:
    """The error of a plugin that is expected to fail; it must not take the host or its neighbour down."""
    async with PluginHost(home=home, inline=inline, **settings) as plugins:
        with pytest.raises(PluginError) as caught:
            await plugins.load(kind, name)
        with pytest.raises(type(caught.value)):
            await plugins.load(kind, name)
        if not inline:
            await plugins.load("op", "neighbour")
        (record,) = plugins.why(name, kind=kind)
        assert not record.state.usable
        assert record.reason
        assert caught.value.record is record
    return caught.value


async def test_an_op_plugin_is_imported_when_it_is_first_used(site, home):
    module = site.echo("tidal")
    async with PluginHost(home=home) as plugins:
        assert "tidal" in plugins.names("op")
        assert module not in sys.modules
        loaded = await plugins.ensure_family("tidal")
        assert module in sys.modules
    assert [spec.name for spec in loaded.contribution.ops] == ["tidal.say"]
    assert loaded.record.state is State.ACTIVE


async def test_an_object_in_a_module_can_be_named(site, home):
    module = site.module(
        """
        from types import SimpleNamespace
        class holder:
            one = SimpleNamespace(name="tidal", models=print, stream=print)
            nested = SimpleNamespace(sideband_providers=lambda: [holder.one])
        """
    )
    site.distribution("test-tidal", {"sideband.v1.provider": {"tidal": f"{module} : holder.nested [extra]"}})
    async with PluginHost(home=home) as plugins:
        assert (await plugins.load("provider", "tidal")).contribution[0].name == "tidal"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("raise ValueError('boom')", "ValueError: boom"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "tried to end the program"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
    ],
)
async def test_whatever_an_import_raises_is_told_and_stays_with_the_plugin(site, home, source, problem):
    site.echo("neighbour")
    site.plugin("op", "tidal", source)
    error = await failure(home)
    assert isinstance(error, PluginImportFailed)
    assert problem in error.message
    assert "test-tidal 1.0" in error.message
    assert error.__cause__ is not None


async def test_an_entry_point_that_names_nothing_is_told(site, home):
    site.echo("neighbour")
    module = site.module()
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": f"{module}:missing"}})
    assert "missing" in (await failure(home)).message


async def test_an_import_that_hangs_has_a_deadline(site, home):
    site.echo("neighbour")
    site.plugin("op", "tidal", "import sideband_test_gate; sideband_test_gate.gate.wait()")
    sys.modules["sideband_test_gate"] = gate = SimpleNamespace(gate=threading.Event())
    try:
        error = await failure(home, import_seconds=1)
    finally:
        gate.gate.set()
        del sys.modules["sideband_test_gate"]
    assert "did not end within 1 s" in error.message


async def test_a_plugin_that_breaks_at_start_leaves_the_others_working(site, home):
    site.plugin("hook", "surf", "raise ValueError('boom')")
    site.plugin("guard", "wall", "raise SystemExit")
    site.echo("neighbour")
    async with PluginHost(home=home) as plugins:
        assert [plugins.why(name)[0].state for name in ("surf", "wall")] == [State.FAILED, State.FAILED]
        assert await plugins.load("op", "neighbour")


@pytest.mark.parametrize(
    ("kind", "source", "details"),
    [
        ("hook", "raise ValueError('boom')", {}),
        ("op", "", {"requires": ["sideband-core>=99"]}),
    ],
    ids=["failed", "incompatible"],
)
async def test_a_strict_host_does_not_start_with_a_plugin_that_can_not_be_used(site, home, kind, source, details):
    site.plugin(kind, "surf", source, **details)
    policy = PluginPolicy(strict=True, only=frozenset({"surf"}))
    with pytest.raises(StrictPluginError, match="surf"):
        async with PluginHost(policy, home=home):
            pass


async def test_a_strict_host_starts_with_plugins_that_are_denied(site, home):
    site.plugin("hook", "surf", "raise ValueError('boom')")
    async with PluginHost(PluginPolicy(strict=True, only=frozenset()), home=home) as plugins:
        assert plugins.records


async def test_a_strict_host_that_does_not_start_leaves_what_it_entered(home):
    from contextlib import asynccontextmanager

    steps = []

    @asynccontextmanager
    async def lifespan(ctx):
        steps.append("enter")
        yield
        steps.append("leave")

    inline = [Plugin("hook", "surf", SimpleNamespace(lifespan=lifespan)), Plugin("hook", "wave", SimpleNamespace)]
    with pytest.raises(StrictPluginError):
        async with PluginHost(PluginPolicy(strict=True), home=home, inline=inline, autoload=False):
            pass
    assert steps == ["enter", "leave"]


async def test_a_plugin_for_another_event_loop_does_not_load(site, home, anyio_backend_name):
    other = {"asyncio": "trio", "trio": "asyncio"}[anyio_backend_name]
    site.echo("neighbour", extra=f"backends = [{anyio_backend_name!r}]")
    site.echo("tidal", extra=f"backends = ({other!r},)")
    error = await failure(home)
    assert isinstance(error, PluginIncompatible)
    assert f"it runs on {other}, and the host runs on {anyio_backend_name}" in error.message


@pytest.mark.parametrize("backends", ["'trio'", "3", "('curio',)"])
async def test_backends_that_name_no_event_loop_are_told(site, home, backends):
    site.echo("neighbour")
    site.echo("tidal", extra=f"backends = {backends}")
    assert isinstance(await failure(home), PluginInvalid)


async def test_many_who_ask_at_once_get_the_same_plugin_imported_once(site, home):
    sys.modules["sideband_test_counter"] = counter = SimpleNamespace(imports=0)
    site.echo("tidal", extra="import sideband_test_counter; sideband_test_counter.imports += 1")
    loaded = []

    async def ask(plugins):
        loaded.append(await plugins.load("op", "tidal"))

    async with PluginHost(home=home) as plugins, anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(ask, plugins)
    del sys.modules["sideband_test_counter"]
    assert counter.imports == 1
    assert len({id(one) for one in loaded}) == 1


async def test_who_asked_first_and_gave_up_does_not_take_the_answer_from_the_others(site, home):
    sys.modules["sideband_test_gate"] = gate = SimpleNamespace(begun=threading.Event(), gate=threading.Event())
    site.echo("tidal", extra="import sideband_test_gate as g; g.begun.set(); g.gate.wait(10)")
    loaded = []

    async def ask(plugins):
        loaded.append(await plugins.load("op", "tidal"))

    async with PluginHost(home=home) as plugins:
        async with anyio.create_task_group() as first:
            first.start_soon(ask, plugins)
            await anyio.to_thread.run_sync(gate.begun.wait)
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as second:
            second.start_soon(ask, plugins)
            gate.gate.set()
    del sys.modules["sideband_test_gate"]
    assert len(loaded) == 1


async def test_leaving_the_host_does_not_wait_for_an_import(site, home):
    sys.modules["sideband_test_gate"] = gate = SimpleNamespace(begun=threading.Event(), gate=threading.Event())
    site.echo("tidal", extra="import sideband_test_gate as g; g.begun.set(); g.gate.wait(10)")
    errors = []

    async def ask(plugins):
        try:
            await plugins.load("op", "tidal")
        except PluginHostClosed as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        async with PluginHost(home=home) as plugins:
            tasks.start_soon(ask, plugins)
            await anyio.to_thread.run_sync(gate.begun.wait)
        gate.gate.set()
    del sys.modules["sideband_test_gate"]
    assert len(errors) == 1


async def test_examining_a_plugin_does_not_activate_it(site, home):
    site.echo("tidal", extra="async def lifespan(ctx): raise RuntimeError('entered')")
    async with PluginHost(home=home) as plugins:
        examined = await plugins.load("op", "tidal", activate=False)
        assert examined.record.state is State.VALIDATED


async def test_a_host_that_is_not_entered_loads_nothing(home):
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


async def test_what_the_body_raises_comes_out_as_it_is(home):
    with pytest.raises(KeyError, match="mine"):
        async with PluginHost(home=home, autoload=False):
            raise KeyError("mine")


async def test_two_hosts_share_nothing(site, home):
    site.echo("tidal")
    async with PluginHost(home=home) as one, PluginHost(PluginPolicy(deny={"tidal": "no"}), home=home) as other:
        await one.load("op", "tidal")
        assert other.why("tidal")[0].state is State.DENIED
