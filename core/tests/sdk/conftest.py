import sys
import types

import anyio
import pytest
from sideband.ops import OpFamily, op
from sideband.ops._sdk import PACKAGE_SOURCE, render_family
from sideband.workers import runtime


class Sdk:
    """Loads generated modules and records the ops that their functions dispatch."""

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
    """Return a loader of generated modules, with a `dispatch` that records ops and parameters."""
    loaded = Sdk()

    async def dispatch(op, params, *, answer=True):
        loaded.sent.append((op, params))
        loaded.answered = answer
        return loaded.answer

    skill = types.ModuleType("sideband.skill")
    vars(skill).update({name: value for name, value in vars(runtime).items() if isinstance(value, type)})
    skill.dispatch = dispatch
    package = types.ModuleType("sideband_sdk")
    package.__path__ = []
    exec(PACKAGE_SOURCE, package.__dict__)
    monkeypatch.setitem(sys.modules, "sideband.skill", skill)
    monkeypatch.setitem(sys.modules, "sideband_sdk", package)
    return loaded


@pytest.fixture
def make_family():
    """Return a factory of families with one op, `sample.send`, and the given parameter model."""

    def make(params, *, name="sample.send", doc="Send a request.", result=dict, rest_of_op=None, **rest):
        async def handler(params, ctx):
            return None

        handler.__doc__ = doc
        handler.__annotations__ = {"params": params, "return": result}
        return OpFamily(name=name.partition(".")[0], ops=(op(name, **(rest_of_op or {}))(handler),), **rest)

    return make


@pytest.fixture
def import_folder():
    """Return a function that runs code with an SDK folder on the path, in a new interpreter."""
    import subprocess

    def run(folder, code):
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"],
            capture_output=True,
            text=True,
            check=False,
        )

    return run
