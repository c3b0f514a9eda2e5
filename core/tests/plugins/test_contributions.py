from types import ModuleType, SimpleNamespace

import attrs
import pytest
from pydantic import BaseModel
from sideband.commands import Command
from sideband.ops import LIMITED, Level, Lower, OpFamily, Scope, op
from sideband.plugins import Plugin, PluginHost, PluginInvalid
from sideband.store import StoreSpec
from sideband.tools import Tool

pytestmark = pytest.mark.anyio


class Params(BaseModel):
    text: str = ""


@attrs.frozen
class CoastScope(Scope, family="tidal"):
    valid_values = {"coast": ("north", "west")}

    coast: str | None = None


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


async def test_missing_registration_function_suggests_the_closest(home):
    assert "no `sideband_ops` (did you mean `sideband_op`?)" in await problem(home, "op", offering(sideband_op=None))


async def test_registration_function_must_be_callable(home):
    assert "`sideband_ops` must be a function, got a str ('x')" in await problem(
        home, "op", SimpleNamespace(sideband_ops="x")
    )


async def test_async_registration_function_is_rejected(home):
    async def sideband_ops():
        raise AssertionError("called")

    assert "`async def`" in await problem(home, "op", SimpleNamespace(sideband_ops=sideband_ops))


async def test_exception_of_a_registration_function_is_reported(home):
    def sideband_ops():
        raise SystemExit("bye")

    assert "SystemExit: 'bye'" in await problem(home, "op", SimpleNamespace(sideband_ops=sideband_ops))


async def test_exception_of_a_property_is_reported(home):
    class Trap:
        @property
        def sideband_ops(self):
            raise ZeroDivisionError("trap")

    assert "ZeroDivisionError: trap" in await problem(home, "op", Trap())


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, "must return an OpFamily, got None"),
        ([say], "must return an OpFamily, got a list"),
        (OpFamily, "got the class `OpFamily`"),
        (OpFamily(name="other", ops=(say_elsewhere,)), "but its entry point `tidal`; use one name for both"),
        (OpFamily(name="tidal", ops=(say_elsewhere,)), "`other.say` is outside its namespace `tidal.`"),
        (OpFamily(name="tidal", ops=(say, say)), "duplicate op `tidal.say`"),
        (OpFamily(name="tidal", ops=(say.handler,)), "decorate the handler with `@op`"),
        (OpFamily(name="tidal", ops=()), "must be a non-empty tuple, got a tuple"),
        (OpFamily(name="tidal", ops=[say]), "must be a non-empty tuple, got a list"),
        (OpFamily(name="tidal", ops=(say,), scope=Params), "must be a subclass of Scope, got the class `Params`"),
        (OpFamily(name="tidal", ops=(say,), credentials=object()), "no method `resolve`"),
    ],
)
async def test_invalid_op_family_is_rejected(home, returned, expected):
    assert expected in await problem(home, "op", offering(sideband_ops=returned))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"lower": [Lower(Level.SAFE, sea=LIMITED)]}, "its op `tidal.rise`: `lower[0].sea` is an unknown field"),
        ({"lower": [Lower(Level.SAFE, coast=("east",))]}, "`lower[0].coast` has the invalid value 'east'"),
        ({"lower": [Lower(Level.RESTRICTED, coast=LIMITED)]}, "which is not below the op's level CONTROLLED; raise"),
        (
            {"lower": [Lower(Level.SAFE, coast=LIMITED)] * 2},
            "`lower[1]` has the same fields as an earlier rule",
        ),
        ({"needs": {"coats": ("west",)}}, "`needs.coats` is an unknown field (did you mean `coast`?)"),
    ],
)
async def test_op_with_an_invalid_level_rule_is_rejected(home, options, expected):
    options |= {"requires": "tidal", "scope": lambda _: CoastScope(), "level": Level.CONTROLLED}
    rise = op("tidal.rise", **options)(say.handler)
    family = OpFamily(name="tidal", ops=(say, rise), scope=CoastScope)
    assert expected in await problem(home, "op", offering(sideband_ops=family))


async def test_missing_sdk_file_is_rejected(home, tmp_path):
    family = OpFamily(name="tidal", ops=(say,), sdk=tmp_path / "missing.py")
    assert "`sdk` must be the Path of a file" in await problem(home, "op", offering(sideband_ops=family))


async def test_valid_family_is_the_contribution(home):
    class TidalScope(Scope):
        place: str | None = None

    family = OpFamily(name="tidal", ops=(say,), scope=TidalScope)
    assert await load(home, "op", offering(sideband_ops=family)) is family


async def test_plugin_without_tools_in_its_configuration_is_valid(home):
    assert await load(home, "tool", offering(sideband_tools=[])) == ()


async def open_once(folder):
    return None


async def open_later(folder):
    yield None


_PROVIDER = SimpleNamespace(name="x", models=print, stream=print)


@pytest.mark.parametrize(
    ("kind", "function", "returned", "expected"),
    [
        ("loader", "sideband_loaders", None, "must return a list, got None"),
        ("loader", "sideband_loaders", [], "an empty list"),
        ("loader", "sideband_loaders", [SimpleNamespace(load=print)], "which has no `name`"),
        ("loader", "sideband_loaders", [SimpleNamespace(name="tidal")], "which has no `load`"),
        (
            "loader",
            "sideband_loaders",
            [SimpleNamespace(name="tidal", load=lambda: 1)],
            "`(sources)` or `(sources, ctx)`",
        ),
        (
            "loader",
            "sideband_loaders",
            [SimpleNamespace(name="tidal", load=lambda sources, more: 1)],
            "`(sources)` or `(sources, ctx)`",
        ),
        ("sandbox", "sideband_sandboxes", [SimpleNamespace(name="x", probe=print)], "which has no `launch`"),
        ("provider", "sideband_providers", [_PROVIDER] * 2, "two objects with the name `x`"),
        ("tool", "sideband_tools", "tools", "must return a list, got a str ('tools')"),
        ("tool", "sideband_tools", [SimpleNamespace(name="tidal")], "decorate the function with `@tool`"),
        ("tool", "sideband_tools", [Tool(7, "", {}, dict, print)], "the name of its tool must be a text"),
        ("tool", "sideband_tools", [Tool("tidal", "", {}, dict, print)] * 2, "duplicate tool `tidal`"),
        ("store", "sideband_stores", [object()], "must return a StoreSpec"),
        ("store", "sideband_stores", [StoreSpec("other", print)], "named `other`, but its entry point `tidal`"),
        ("store", "sideband_stores", [StoreSpec("tidal", open_once)], "decorated with `@asynccontextmanager`"),
        ("store", "sideband_stores", [StoreSpec("tidal", open_later)], "decorated with `@asynccontextmanager`"),
        ("command", "sideband_commands", [], "must return a Command, got a list ([])"),
        ("command", "sideband_commands", Command("other", "", print, print), "named `other`"),
        ("command", "sideband_commands", Command("tidal", "", print, print, "window"), 'must be "host" or empty'),
        ("command", "sideband_commands", Command("tidal", "", print, print, "host"), "must be `async def run"),
        ("guard", "sideband_guards", [object()], "must return a class"),
        ("guard", "sideband_guards", [int, str], "give each its own entry point"),
        ("hook", "unused", None, "no function is marked with @hookimpl"),
    ],
)
async def test_invalid_contribution_of_other_kinds_is_rejected(home, kind, function, returned, expected):
    assert expected in await problem(home, kind, offering(**{function: returned}))


async def test_sdk_file_must_be_a_path(home):
    family = OpFamily(name="tidal", ops=(say,), sdk=__file__)
    assert "`sdk` must be the Path of a file" in await problem(home, "op", offering(sideband_ops=family))


async def test_module_without_registration_function_of_tools_is_rejected(home):
    expected = "has no `sideband_tools`; define this function there, or correct the entry point"
    assert expected in await problem(home, "tool", ModuleType("acme"))


async def test_hook_plugin_must_not_be_a_class(home):
    assert "the class `Params`; use an instance" in await problem(home, "hook", Params)


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
async def test_returned_items_are_the_contribution(home, kind, function, item):
    assert await load(home, kind, offering(**{function: [item]})) == (item,)


async def test_command_is_the_contribution(home):
    command = Command("tidal", "", print, print)
    assert await load(home, "command", offering(sideband_commands=command)) is command


async def test_undecorated_lifespan_is_rejected(home):
    async def lifespan(ctx):
        yield

    value = offering(sideband_ops=OpFamily(name="tidal", ops=(say,)))
    value.lifespan = lifespan
    assert "decorate it with `@asynccontextmanager`" in await problem(home, "op", value)
