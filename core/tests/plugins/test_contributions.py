from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband.commands import Command
from sideband.ops import OpFamily, Scope, op
from sideband.plugins import Plugin, PluginHost, PluginInvalid
from sideband.store import StoreSpec
from sideband.tools import Tool

pytestmark = pytest.mark.anyio


class Params(BaseModel):
    text: str = ""


@op("tidal.say")
async def say(params: Params, ctx) -> str:
    return params.text


@op("other.say")
async def say_elsewhere(params: Params, ctx) -> str:
    return params.text


async def load(home, kind, value, name="tidal"):
    async with PluginHost(home=home, inline=[Plugin(kind, name, value)], autoload=False) as plugins:
        return (await plugins.load(kind, name)).contribution


async def problem(home, kind, value) -> str:
    async with PluginHost(home=home, inline=[Plugin(kind, "tidal", value)], autoload=False) as plugins:
        with pytest.raises(PluginInvalid) as caught:
            await plugins.load(kind, "tidal")
        assert plugins.records[0].reason == caught.value.reason
    return caught.value.reason


def offering(**functions):
    return SimpleNamespace(**{name: (lambda result=result: result) for name, result in functions.items()})


async def test_a_missing_registration_function_names_the_closest(home):
    assert "no `sideband_ops` (did you mean `sideband_op`?)" in await problem(home, "op", offering(sideband_op=None))


async def test_a_registration_function_that_is_none_is_told(home):
    assert "`sideband_ops` is a str ('x'), not a function" in await problem(
        home, "op", SimpleNamespace(sideband_ops="x")
    )


async def test_an_async_registration_function_is_told(home):
    async def sideband_ops():
        raise AssertionError("called")

    assert "`async def`" in await problem(home, "op", SimpleNamespace(sideband_ops=sideband_ops))


async def test_a_registration_function_that_raises_is_told(home):
    def sideband_ops():
        raise SystemExit("bye")

    assert "SystemExit: 'bye'" in await problem(home, "op", SimpleNamespace(sideband_ops=sideband_ops))


async def test_an_attribute_that_raises_when_read_is_told(home):
    class Trap:
        @property
        def sideband_ops(self):
            raise ZeroDivisionError("trap")

    assert "ZeroDivisionError: trap" in await problem(home, "op", Trap())


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (None, "returned None, not an OpFamily"),
        ([say], "returned a list, not an OpFamily"),
        (OpFamily, "returned the class `OpFamily`"),
        (OpFamily(name="other", ops=(say_elsewhere,)), "called `other`, but its entry point `tidal`"),
        (OpFamily(name="tidal", ops=(say_elsewhere,)), "`other.say` is outside its namespace `tidal.`"),
        (OpFamily(name="tidal", ops=(say, say)), "two ops `tidal.say`"),
        (OpFamily(name="tidal", ops=(say.handler,)), "decorate the handler with `@op`"),
        (OpFamily(name="tidal", ops=()), "not a tuple of at least one"),
        (OpFamily(name="tidal", ops=[say]), "not a tuple of at least one"),
        (OpFamily(name="tidal", ops=(say,), scope=Params), "`scope` is the class `Params`, not a subclass of Scope"),
        (OpFamily(name="tidal", ops=(say,), credentials=object()), "has no `resolve`"),
    ],
)
async def test_an_op_family_that_can_not_be_used_is_told(home, returned, told):
    assert told in await problem(home, "op", offering(sideband_ops=returned))


async def test_a_sdk_that_is_no_file_is_told(home, tmp_path):
    family = OpFamily(name="tidal", ops=(say,), sdk=tmp_path / "none.py")
    assert "which is no file" in await problem(home, "op", offering(sideband_ops=family))


async def test_a_good_family_is_the_contribution(home):
    class TidalScope(Scope):
        place: str | None = None

    family = OpFamily(name="tidal", ops=(say,), scope=TidalScope)
    assert await load(home, "op", offering(sideband_ops=family)) is family


_PROVIDER = SimpleNamespace(name="x", models=print, stream=print)


@pytest.mark.parametrize(
    ("kind", "function", "returned", "told"),
    [
        ("loader", "sideband_loaders", None, "returned None, not a list"),
        ("loader", "sideband_loaders", [], "an empty list"),
        ("loader", "sideband_loaders", [SimpleNamespace(load=print)], "which has no `name`"),
        ("loader", "sideband_loaders", [SimpleNamespace(name="tidal")], "which has no `load`"),
        ("sandbox", "sideband_sandboxes", [SimpleNamespace(name="x", probe=print)], "which has no `launch`"),
        (
            "provider",
            "sideband_providers",
            [_PROVIDER] * 2,
            "two things called `x`",
        ),
        ("tool", "sideband_tools", "tools", "returned a str ('tools'), not a list"),
        ("tool", "sideband_tools", [SimpleNamespace(name="tidal")], "decorate the function with `@tool`"),
        ("tool", "sideband_tools", [Tool("other", "", {}, dict, print)], "neither `tidal` nor `tidal.*`"),
        ("tool", "sideband_tools", [Tool("tidal", "", {}, dict, print)] * 2, "two tools `tidal`"),
        ("store", "sideband_stores", [object()], "not a StoreSpec"),
        ("store", "sideband_stores", [StoreSpec("other", print)], "called `other`, but its entry point `tidal`"),
        ("command", "sideband_commands", [], "returned a list ([]), not a Command"),
        ("command", "sideband_commands", Command("other", "", print, print), "called `other`"),
        ("guard", "sideband_guards", [object()], "a guard is a class"),
        ("guard", "sideband_guards", [int, str], "an entry point of its own"),
        ("hook", "unread", None, "no function marked with @hookimpl"),
    ],
)
async def test_what_a_plugin_of_another_kind_returns_is_checked(home, kind, function, returned, told):
    assert told in await problem(home, kind, offering(**{function: returned}))


async def test_a_hook_plugin_that_is_a_class_is_told(home):
    assert "the class `Params`; name an instance" in await problem(home, "hook", Params)


@pytest.mark.parametrize(
    ("kind", "function", "item"),
    [
        ("loader", "sideband_loaders", SimpleNamespace(name="tidal", load=print)),
        ("sandbox", "sideband_sandboxes", SimpleNamespace(name="tidal", probe=print, launch=print)),
        ("provider", "sideband_providers", SimpleNamespace(name="tidal", models=print, stream=print)),
        ("tool", "sideband_tools", Tool("tidal.read", "Read.", {}, dict, print)),
        ("store", "sideband_stores", StoreSpec("tidal", print)),
    ],
)
async def test_what_a_plugin_returns_is_its_contribution(home, kind, function, item):
    assert await load(home, kind, offering(**{function: [item]})) == (item,)


async def test_a_command_is_its_contribution(home):
    command = Command("tidal", "", print, print)
    assert await load(home, "command", offering(sideband_commands=command)) is command


async def test_a_lifespan_that_was_not_decorated_is_told(home):
    async def lifespan(ctx):
        yield

    value = offering(sideband_ops=OpFamily(name="tidal", ops=(say,)))
    value.lifespan = lifespan
    assert "decorate it with `@asynccontextmanager`" in await problem(home, "op", value)
