"""Op families with one fault each."""

import asyncio
import logging
import os
import pathlib
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel, field_validator
from sideband import Level, OpFamily, Plugin, op
from sideband.ops import OpFailed, OpParams, Reconciled, Undo
from sideband_testing import Example, OpFamilyConformance

LOG = logging.getLogger("faulty")
LEAKED = []


class Text(OpParams):
    text: str = ""
    max_tokens: int | None = None  # a number is not a secret, whatever its name


class Gone(OpFailed):
    code = "faulty.gone"

    def __init__(self):
        super().__init__("it is gone", hint="look elsewhere")


def family(handler, *, params=Text, result=str, more=None, **options):
    handler.__annotations__ = {"params": params, "return": result}
    handler.__doc__ = options.pop("doc", "Do something.")
    spec = op("faulty.do", **{"level": Level.SAFE, **options})(handler)
    value = SimpleNamespace(sideband_ops=lambda: OpFamily(name="faulty", ops=(spec,)), **(more or {}))
    return Plugin("op", "faulty", value)


async def good(params, ctx):
    await anyio.lowlevel.checkpoint()
    if params.text == "gone":
        raise Gone
    return params.text


class Base(OpFamilyConformance):
    fault = ""
    max_steps = 6
    examples = (Example("faulty.do", {"text": "x"}), Example("faulty.do", {"text": "gone"}, error="faulty.gone"))


class TestGood(Base):
    plugin = family(good)


class Made(Base):
    """A package, whose import does something."""

    plugin = "op.faulty"
    head = ""
    examples = None

    @pytest.fixture(autouse=True)
    def made(self, make_plugin):
        source = f"""
{self.head}
from sideband import OpFamily, op
from sideband.ops import OpParams

class Params(OpParams):
    pass

@op("faulty.do")
async def do(params: Params, ctx) -> None:
    '''Do nothing.'''

def sideband_ops():
    return OpFamily(name="faulty", ops=(do,))
"""
        make_plugin("op", "faulty", source, requires=getattr(self, "requires", ["sideband-core>=0.1,<1"]))


class TestImportSetsAVariable(Made):
    fault = "test_import_has_no_side_effects"
    head = "import os\nos.environ['FAULTY'] = '1'"


class TestImportIsHeavy(Made):
    fault = "test_import_is_cheap"
    head = "import httpx"


class TestNoRequirement(Made):
    fault = "test_metadata_and_registration_agree"
    requires = ()


class Config(BaseModel):
    api_key: str = ""


class TestConfigurationShowsASecret(Base):
    fault = "test_configuration_hides_secrets"
    plugin = family(good, more={"Config": Config})


class Leaking:
    def __init__(self, ctx):
        pass

    async def __aenter__(self):
        LEAKED.append(os.open(os.devnull, os.O_RDONLY))

    async def __aexit__(self, *_):
        pass


class TestLifespanLeaks(Base):
    fault = "test_closed_host_leaves_nothing_behind"
    plugin = family(good, more={"lifespan": Leaking})


async def only_asyncio(params, ctx):
    await asyncio.sleep(0)
    return "x"


class TestNeedsAsyncio(Base):
    fault = "test_runs_on_each_declared_event_loop"
    plugin = family(only_asyncio)
    examples = (Example("faulty.do", {}),)
    # The same fault would be found again on trio.
    overrides = {"test_cancellation_leaves_nothing_behind": "it runs on both event loops too"}


async def undocumented(params, ctx):
    return await good(params, ctx)


class TestUndocumented(Base):
    fault = "test_each_op_has_an_example_and_a_description"
    plugin = family(undocumented, doc=" ")


class Callback(OpParams):
    text: str = ""

    @classmethod
    def model_json_schema(cls, *args, **kwargs):
        return {"type": "texts"}


class TestInvalidSchema(Base):
    fault = "test_schemas_are_valid"
    plugin = family(good, params=Callback)
    overrides = {"test_examples_round_trip": "it uses the schema too"}


class Growing(OpParams):
    text: str = ""

    @field_validator("text")
    @classmethod
    def _grow(cls, value):
        return f"{value}." if value != "gone" else value


class TestParametersDoNotRoundTrip(Base):
    fault = "test_examples_round_trip"
    plugin = family(good, params=Growing)


class Ignoring(BaseModel):
    text: str = ""


class TestIgnoresUnknownParameters(Base):
    fault = "test_wrong_parameters_are_refused"
    plugin = family(good, params=Ignoring)


async def raises(params, ctx):
    if params.text == "gone":
        raise KeyError("gone")
    return params.text


class TestRaisesAnything(Base):
    fault = "test_failures_are_typed"
    plugin = family(raises)
    examples = (Example("faulty.do", {"text": "x"}), Example("faulty.do", {"text": "gone"}, error="op.failed"))


async def leaves_a_descriptor(params, ctx):
    descriptor = os.open(os.devnull, os.O_RDONLY)
    await anyio.lowlevel.checkpoint()
    os.close(descriptor)
    return "x"


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = family(leaves_a_descriptor, more={"backends": ("asyncio",)})
    examples = (Example("faulty.do", {}),)
    overrides = {"test_deadline_ends_an_op": "a deadline cancels too"}


async def swallows(params, ctx):
    try:
        await anyio.sleep(0.05)
    except BaseException:  # noqa: BLE001  its fault
        return "still here"
    return "x"


class TestSwallowsCancellation(Base):
    fault = "test_deadline_ends_an_op"
    plugin = family(swallows, more={"backends": ("asyncio",)})
    examples = (Example("faulty.do", {}),)


async def logs(params, ctx):
    LOG.warning("params %s", params)
    return "x"


class TestLogsParameters(Base):
    fault = "test_secrets_stay_hidden"
    plugin = family(logs)
    examples = (Example("faulty.do", {"text": "x"}),)


class Path(OpParams):
    path: str


def write(path):
    pathlib.Path(path).write_text("new")


async def change(params, ctx):
    await ctx.note({"path": params.path})
    write(params.path)
    await anyio.lowlevel.checkpoint()
    return "x"


async def undoes_nothing(recorded, ctx):
    return Undo()


async def always_done(recorded, ctx):
    return Reconciled(happened=True)


class Changing(Base):
    examples = (Example("faulty.do", {"path": "{folder}/a"}),)


class TestUndoDoesNothing(Changing):
    fault = "test_undo_reverts_what_was_done"
    plugin = family(change, params=Path, undo=undoes_nothing, level=Level.CONTROLLED, record=["path"])


class TestReconcileIsWrong(Changing):
    fault = "test_reconcile_tells_after_a_kill_at_each_step"
    plugin = family(change, params=Path, reconcile=always_done, level=Level.CONTROLLED, record=["path"])
