"""The sandbox with the strongest tier is chosen, and nothing runs below the required tier."""

from types import SimpleNamespace

import anyio.lowlevel
import pytest
from sideband import SidebandError
from sideband.calls._isolation import ChosenSandbox
from sideband.plugins import PluginError
from sideband.workers import Isolation, IsolationUnavailable, Probe

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Process:
    def __init__(self, isolation):
        self.isolation = isolation
        self.closed = False

    async def close(self):
        await anyio.lowlevel.checkpoint()
        self.closed = True


class Sandbox:
    name = "only"

    def __init__(self, tier, *hints, gives=None):
        self.result = Probe(tier, ("it could not",), (), hints)
        self.gives = tier if gives is None else gives
        self.probed = 0
        self.launched = []
        self.closed = False
        self.on_launch = lambda: None

    async def probe(self, folders):
        self.probed += 1
        return self.result

    async def launch(self, request):
        self.on_launch()
        self.launched.append(Process(self.gives))
        return self.launched[-1]

    async def close(self):
        self.closed = True


class ProgrammableSandbox(Sandbox):
    """A sandbox that supports programs too."""

    launch_program = Sandbox.launch


class Plugins:
    """Sandbox plugins by name, with an error instead of a plugin that fails to load."""

    def __init__(self, **found):
        self.found = found

    def names(self, kind, *, broken=False):
        assert kind == "sandbox"
        return tuple(self.found)

    async def load(self, kind, name):
        if isinstance(self.found[name], Exception):
            raise self.found[name]
        return SimpleNamespace(contribution=(self.found[name],))

    def check_strict(self):
        """The policy is not strict."""


@pytest.mark.parametrize("order", [("weak", "strong"), ("strong", "weak")])
async def test_strongest_sandbox_is_chosen(order):
    made = {"weak": Sandbox(Isolation.NO_NAMESPACES), "strong": Sandbox(Isolation.FULL)}
    chosen = ChosenSandbox(Plugins(**{name: made[name] for name in order}), Isolation.FULL)
    process = await chosen.launch("request")
    assert made["strong"].launched == [process]
    assert (await chosen.probe()).isolation is Isolation.FULL


async def test_sandbox_that_proves_no_tier_starts_the_workers_if_none_is_stronger():
    limiting = Sandbox(Isolation.NONE)
    chosen = ChosenSandbox(Plugins(limiting=limiting), Isolation.NONE)
    process = await chosen.launch("request")
    assert limiting.launched == [process]
    isolating = Sandbox(Isolation.FULL)
    chosen = ChosenSandbox(Plugins(limiting=limiting, isolating=isolating), Isolation.NONE)
    process = await chosen.launch("request")
    assert isolating.launched == [process]


async def test_close_closes_all_probed_sandboxes():
    made = {"weak": Sandbox(Isolation.NO_NAMESPACES), "strong": Sandbox(Isolation.FULL)}
    chosen = ChosenSandbox(Plugins(**made), Isolation.FULL)
    await chosen.probe()
    await chosen.close()
    assert all(sandbox.closed for sandbox in made.values())


async def test_sandboxes_are_probed_once():
    sandbox = Sandbox(Isolation.FULL)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    for _ in range(3):
        await chosen.require()
    assert sandbox.probed == 1


async def test_insufficient_tier_starts_no_worker_and_names_the_remedy():
    sandbox = Sandbox(Isolation.NO_NAMESPACES, "allow user namespaces")
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    for ask in (chosen.require(), chosen.launch("request")):
        with pytest.raises(IsolationUnavailable) as caught:
            await ask
        assert "allow user namespaces" in caught.value.hint
        assert "--isolation no-namespaces" in caught.value.hint
    assert sandbox.launched == []


async def test_worker_started_without_the_required_tier_is_closed():
    sandbox = Sandbox(Isolation.FULL, "allow user namespaces", gives=Isolation.NO_NAMESPACES)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    with pytest.raises(IsolationUnavailable) as caught:
        await chosen.launch("request")
    assert "`no-namespaces`" in str(caught.value)
    assert "allow user namespaces" in caught.value.hint
    assert sandbox.launched[0].closed


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_insufficient_worker_is_closed_despite_cancellation():
    sandbox = Sandbox(Isolation.FULL, gives=Isolation.NONE)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    with anyio.CancelScope() as scope:
        sandbox.on_launch = scope.cancel
        with pytest.raises(IsolationUnavailable):
            await chosen.launch("request")
    assert sandbox.launched[0].closed


async def test_worker_weaker_than_the_probe_but_sufficient_is_accepted():
    sandbox = Sandbox(Isolation.FULL, gives=Isolation.NO_NAMESPACES)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.NONE)
    assert (await chosen.launch("request")).isolation is Isolation.NO_NAMESPACES


async def test_remedy_keeps_one_worker_per_call():
    chosen = ChosenSandbox(Plugins(), Isolation.FULL, alone=True)
    with pytest.raises(IsolationUnavailable, match="`full,call` is required") as caught:
        await chosen.require()
    assert "--isolation none,call" in caught.value.hint


async def test_sandbox_that_does_not_load_is_reported_in_hints():
    class Broken(PluginError, SidebandError):
        def __init__(self):
            SidebandError.__init__(self, "the sandbox is broken")

    chosen = ChosenSandbox(Plugins(broken=Broken()), Isolation.NONE)
    assert await chosen.require() is Isolation.NONE
    assert "the sandbox is broken" in (await chosen.probe()).hints


@pytest.mark.parametrize(
    ("system", "remedy"),
    [("linux", "install `sideband-sandbox`"), ("darwin", "install `sideband-seatbelt`"), ("plan9", "")],
)
async def test_unsupported_system_names_the_package_to_install(monkeypatch, system, remedy):
    monkeypatch.setattr("sys.platform", system)
    chosen = ChosenSandbox(Plugins(foreign=Sandbox(Isolation.NONE)), Isolation.FULL)
    with pytest.raises(IsolationUnavailable) as caught:
        await chosen.require()
    hint = caught.value.hint.split("; ")[0]
    assert hint.endswith(f": {remedy}") if remedy else "install" not in hint.replace("installed", "")


async def test_programs_use_the_sandbox_of_workers():
    sandbox = ProgrammableSandbox(Isolation.FULL)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    assert await chosen.launch_program("request") in sandbox.launched


async def test_insufficient_tier_starts_no_program():
    sandbox = ProgrammableSandbox(Isolation.NO_NAMESPACES)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    with pytest.raises(IsolationUnavailable):
        await chosen.launch_program("request")
    assert sandbox.launched == []


async def test_sandbox_without_program_support_starts_no_program():
    sandbox = Sandbox(Isolation.FULL)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    with pytest.raises(IsolationUnavailable) as caught:
        await chosen.launch_program("request")
    assert "supports workers only" in caught.value.hint
    assert sandbox.launched == []


async def test_program_started_without_the_required_tier_is_closed():
    sandbox = ProgrammableSandbox(Isolation.FULL, gives=Isolation.NO_NAMESPACES)
    chosen = ChosenSandbox(Plugins(only=sandbox), Isolation.FULL)
    with pytest.raises(IsolationUnavailable):
        await chosen.launch_program("request")
    assert sandbox.launched[0].closed
