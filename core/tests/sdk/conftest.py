import sys
import types

import anyio
import pytest
from sideband.ops import OpFamily, op
from sideband.ops._sdk import PACKAGE_SOURCE, render_family


class Sdk:
    """The generated module of a family, and what its functions dispatched."""

    def __init__(self):
        self.sent = []
        self.answer = "answer"

    def load(self, family: OpFamily):
        module = types.ModuleType(f"sideband_sdk.{family.name}")
        exec(compile(render_family(family), f"{family.name}.py", "exec", dont_inherit=True), module.__dict__)
        return module

    def call(self, function, *args, **kwargs):
        async def run():
            return await function(*args, **kwargs)

        return anyio.run(run)


@pytest.fixture
def sdk(monkeypatch):
    """Runs generated modules as a worker does, with a `dispatch` that writes down what reaches the wire."""
    loaded = Sdk()

    async def dispatch(op, params, *, answer=True):
        loaded.sent.append((op, params))
        loaded.answered = answer
        return loaded.answer

    skill = types.ModuleType("sideband.skill")
    skill.dispatch = dispatch
    package = types.ModuleType("sideband_sdk")
    package.__path__ = []
    exec(PACKAGE_SOURCE, package.__dict__)
    monkeypatch.setitem(sys.modules, "sideband.skill", skill)
    monkeypatch.setitem(sys.modules, "sideband_sdk", package)
    return loaded


@pytest.fixture
def make_family():
    """A family of one op, `sample.send`, with the given parameter model."""

    def make(params, *, name="sample.send", doc="Send it.", result=dict, fire_and_forget=False, **rest):
        async def handler(params, ctx):
            return None

        handler.__doc__ = doc
        handler.__annotations__ = {"params": params, "return": result}
        return OpFamily(name=name.partition(".")[0], ops=(op(name, fire_and_forget=fire_and_forget)(handler),), **rest)

    return make


@pytest.fixture
def import_folder():
    """Import modules from a written SDK folder, in a fresh interpreter."""
    import subprocess

    def run(folder, code):
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"],
            capture_output=True,
            text=True,
            check=False,
        )

    return run
