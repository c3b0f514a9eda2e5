"""Strict hosts: a plugin that cannot be used is an error, at the start and at its first use."""

from types import SimpleNamespace

import pytest
import sideband_store_sqlite.plugin
from sideband import Host
from sideband.plugins import Plugin, PluginHost, PluginPolicy, State, StrictPluginError

pytestmark = pytest.mark.anyio

STORE = Plugin("store", "sqlite", sideband_store_sqlite.plugin)
HOOK = "from sideband.hooks import hookimpl\n@hookimpl\ndef settled(event): pass\n"
LIFESPAN = (
    "from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def lifespan(ctx):\n"
    "    raise RuntimeError('no luck')\n    yield\n"
)
CONFIG = "from pydantic import BaseModel\nclass Config(BaseModel):\n    size: int\n"
DECIDES = "from sideband.hooks import hookimpl\n@hookimpl\ndef op_call(event): pass\n"
AT_START = {
    "import": ("hook", "1 / 0", {}, "ZeroDivisionError"),
    "exit": ("guard", "raise SystemExit(3)", {}, "tried to exit the program"),
    "version": ("op", "", {"requires": ["sideband-core>=99"]}, "requires sideband-core>=99"),
    "hook": ("hook", HOOK.replace("settled", "setled"), {}, "did you mean `settled`"),
    "configuration": ("hook", CONFIG + HOOK, {}, "required key is missing"),
    "lifespan": ("hook", LIFESPAN + HOOK, {}, "no luck"),
    "reserved": ("hook", DECIDES, {}, "reserved for guards"),
    "guard": ("guard", "def sideband_guards(): return 1", {}, "must return a list"),
}
AT_FIRST_USE = {
    "tool": lambda host: host.tools.view(),
    "loader": lambda host: host.skills(),
    "sandbox": lambda host: host.sandbox.probe(),
}


@pytest.mark.parametrize("strict", [True, False])
async def test_each_unusable_plugin_is_an_error_of_a_strict_host_only_and_the_message_names_all(site, home, strict):
    for name, (kind, source, details, _) in AT_START.items():
        site.plugin(kind, name, source, **details)
    site.plugin("hook", "usable", HOOK)
    site.plugin("hook", "denied", "1 / 0")
    site.echo("twice", distribution="test-one")
    site.echo("twice", distribution="test-two")
    policy = PluginPolicy(
        strict=strict, only=frozenset({"test-*"}), deny={"denied": "not here"}, config={"missing": {}}
    )
    if not strict:
        async with PluginHost(policy, home=home) as plugins:
            states = {
                record.name: record.state for record in plugins.records if record.distribution.startswith("test-")
            }
        assert {states[name] for name in AT_START} == {State.FAILED, State.INCOMPATIBLE}
        assert states["usable"] is State.ACTIVE
        return
    with pytest.raises(StrictPluginError) as caught:
        async with PluginHost(policy, home=home):
            pass
    for name, (kind, _, _, reason) in AT_START.items():
        (problem,) = [one for one in caught.value.problems if f"{kind} `{name}` (test-{name} 1.0): " in one]
        assert reason in problem
        assert problem in caught.value.message
    assert sum("`twice`" in one for one in caught.value.problems) == 2
    assert any("plugins.missing" in one for one in caught.value.problems)
    assert not any("`denied`" in one or "`usable`" in one for one in caught.value.problems)
    assert caught.value.exit_code == 5


@pytest.mark.parametrize("kind", AT_FIRST_USE)
@pytest.mark.parametrize("strict", [True, False])
async def test_plugin_that_fails_at_its_first_use_is_an_error_of_a_strict_host_too(site, home, kind, strict):
    site.plugin(kind, "late", "1 / 0")
    settings = {"policy": {"only": ["test-*"], "strict": strict}}
    async with Host(home=home, settings=settings, plugins=[STORE]) as host:
        if strict:
            with pytest.raises(StrictPluginError, match=rf"{kind} `late` \(test-late 1.0\): .*ZeroDivisionError"):
                await AT_FIRST_USE[kind](host)
        else:
            assert host.plugins.active(kind, "late") is None
            if kind != "sandbox":
                await AT_FIRST_USE[kind](host)


async def test_strict_host_does_not_open_with_a_source_of_secrets_that_fails(site, home):
    site.plugin("secrets", "late", "1 / 0")
    (home / "late").mkdir()
    for strict in (False, True):
        host = Host(home=home, settings={"policy": {"only": ["test-*"], "strict": strict}}, plugins=[STORE])
        if strict:
            with pytest.raises(StrictPluginError, match="ZeroDivisionError"):
                await host.__aenter__()
        else:
            async with host:
                assert "late" in host.broker.sources.closed


async def test_strict_host_accepts_denied_plugins(site, home):
    site.plugin("hook", "surf", "raise ValueError('boom')")
    async with PluginHost(PluginPolicy(strict=True, only=frozenset()), home=home) as plugins:
        assert plugins.records


async def test_strict_host_that_fails_to_start_exits_its_lifespans(home):
    from contextlib import asynccontextmanager

    steps = []

    @asynccontextmanager
    async def lifespan(ctx):
        steps.append("enter")
        yield
        steps.append("exit")

    inline = [Plugin("hook", "surf", SimpleNamespace(lifespan=lifespan)), Plugin("hook", "wave", SimpleNamespace)]
    with pytest.raises(StrictPluginError):
        async with PluginHost(PluginPolicy(strict=True), home=home, inline=inline, autoload=False):
            pass
    assert steps == ["enter", "exit"]
