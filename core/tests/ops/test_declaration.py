"""A mistake in the arguments of `@op` and `@tool` is reported where it is written."""

import pytest
from pydantic import BaseModel
from sideband import Level, OpContext, Scope, op
from sideband.ops import LIMITED, Lower
from sideband.tools import ToolContext, tool


class EchoParams(BaseModel):
    text: str = ""


async def say(params: EchoParams, ctx: OpContext) -> str:
    return params.text


async def show(params: EchoParams, ctx: ToolContext) -> str:
    return params.text


async def plan(recorded, ctx):
    return None


def scoped(params, ctx):
    return Scope()


def three(params, config, ctx):
    return Scope()


async def later(params):
    return Scope()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"level": "safe"}, "`level` must be a Level such as Level.SAFE, got 'safe'"),
        ({"level": 1}, "`level` must be a Level such as Level.SAFE, got 1"),
        ({"timeout": "5"}, "`timeout` must be a positive number of seconds, got '5'"),
        ({"timeout": 0}, "`timeout` must be a positive number of seconds, got 0"),
        ({"requires": "echo", "scope": scoped}, r"`scope` must be a function `def scope\(params\)`"),
        ({"requires": "echo", "scope": three}, r".* or `def scope\(params, config\)`"),
        ({"egress": "yes"}, r"`egress` must be a function `def egress\(params\)` or `def egress\(params, config\)`"),
        ({"egress": later}, r"`egress` must be a function"),
        ({"egress": scoped}, r"`egress` must be a function"),
        ({"requires": "echo", "scope": later}, r"`scope` must be a function `def scope\(params\)`"),
        ({"requires": "echo", "scope": Scope()}, r"`scope` must be a function `def scope\(params\)`"),
        ({"scope": lambda params: Scope()}, "`scope` has no effect without `requires`"),
        ({"preview": lambda params, ctx: "text"}, r"`preview` must be a function `async def preview\(params, ctx\)`"),
        ({"reconcile": later}, r"`reconcile` must be a function `async def reconcile\(recorded, ctx\)`"),
        ({"undo": "no"}, r"`undo` must be a function `async def undo\(recorded, ctx\)`"),
        ({"requires": "echo:text=a"}, "`requires` must be the family of a capability, .*, got 'echo:text=a'"),
        ({"requires": 3}, "`requires` must be the family of a capability, .*, got 3"),
        ({"needs": ("mode",)}, r"`needs` must map fields to values, .*, got \('mode',\)"),
        ({"lower": Lower(Level.SAFE, text=LIMITED)}, r"`lower` must be a list of rules such as Lower\(.*, got Lower"),
        ({"lower": "safe"}, "`lower` must be a list of rules .*, got 'safe'"),
        ({"record": "text"}, "`record` must be a list of fields, got 'text'"),
    ],
)
def test_op_rejects_an_invalid_argument_when_it_is_declared(options, problem):
    with pytest.raises(TypeError, match=f"^op `echo.say`: {problem}"):
        op("echo.say", **options)(say)


@pytest.mark.parametrize("decorator", [op, tool])
def test_decorator_without_a_name_is_refused(decorator):
    with pytest.raises(TypeError, match=f"^`@{decorator.__name__}` needs a name, as in .*, got <function show"):
        decorator(show)


@pytest.mark.parametrize(("option", "value"), [("level", "safe"), ("timeout", -1)])
def test_tool_rejects_an_invalid_argument_when_it_is_declared(option, value):
    with pytest.raises(TypeError, match=f"^tool `echo`: `{option}` must be .*, got {value!r}"):
        tool("echo", **{option: value})(show)


def test_op_accepts_valid_arguments():
    def scope(params, extra=None):
        return Scope()

    options = {"level": Level.CONTROLLED, "timeout": 5, "requires": "echo", "record": ("text",)}
    spec = op("echo.say", scope=scope, preview=plan, reconcile=plan, undo=plan, **options)(say)
    assert (spec.level, spec.timeout, spec.record) == (Level.CONTROLLED, 5, ("text",))


@pytest.mark.parametrize(("decorate", "what"), [(op("echo.say"), "op `echo.say`"), (tool("echo"), "tool `echo`")])
def test_base_model_itself_is_not_a_model_of_parameters(decorate, what):
    async def anything(params: BaseModel, ctx) -> str:
        return ""

    with pytest.raises(TypeError, match=f"^{what}: annotate `params` with a pydantic model, a subclass of BaseModel"):
        decorate(anything)


def test_rule_without_a_level_is_refused():
    with pytest.raises(TypeError, match=r"^`Lower`: expected a Level such as Level\.MONITORED, got 'safe'$"):
        Lower("safe", text=LIMITED)
