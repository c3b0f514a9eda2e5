"""Each prepared change to an API is found, and classified as an addition or a break by the right rule."""

import sys
import types

import attrs
import pytest
from pydantic import BaseModel, create_model
from sideband.commands import Command
from sideband.errors import UsageError
from sideband.hooks import HOOK_SPECS, Failure, Kind
from sideband.ops import LIMITED, Level, Lower, OpContext, OpError, OpFamily, Scope, op
from sideband.tools import ToolContext, tool

HEAD = """
from __future__ import annotations
import abc, enum, typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from attrs import field, frozen
from pydantic import BaseModel
"""
PYTHON = [
    # names
    ("def f(): ...", "", {"f": "removed"}),
    ("", "def f(a): ...", {"f": "added"}),
    ("def f(): ...", "class f: ...", {"f": "kind-changed"}),
    ("class Old: x: int", "class New: x: int", {"Old": "removed", "New": "added"}),
    ("LIMIT = 1", "LIMIT = '1'", {"LIMIT": "retyped"}),
    ("LIMIT = 1", "LIMIT = 2", {}),
    ("Mode = typing.Literal['a']", "Mode = typing.Literal['b', 'a']", {"Mode": "alias-widened"}),
    ("Mode = typing.Literal['a', 'b']", "Mode = typing.Literal['b']", {"Mode": "alias-changed"}),
    # arguments
    ("def f(a, b): ...", "def f(a): ...", {"f(b)": "removed"}),
    ("def f(a): ...", "def f(a, b): ...", {"f(b)": "required"}),
    ("def f(a): ...", "def f(a, b=1): ...", {"f(b)": "added"}),
    ("def f(a, b): ...", "def f(b, a): ...", {"f": "argument-moved"}),
    ("def f(a=0, b=0): ...", "def f(a=0, c=0, b=0): ...", {"f": "argument-moved", "f(c)": "added"}),
    ("def f(a): ...", "def f(*, a): ...", {"f(a)": "passed-in-fewer-ways"}),
    ("def f(a): ...", "def f(a, /): ...", {"f(a)": "passed-in-fewer-ways"}),
    ("def f(*, a): ...", "def f(a): ...", {"f(a)": "passed-in-more-ways"}),
    ("def f(a=1): ...", "def f(a): ...", {"f(a)": "default-lost"}),
    ("def f(a): ...", "def f(a=1): ...", {"f(a)": "default-gained"}),
    ("def f(a=1): ...", "def f(a=2): ...", {"f(a)": "default-changed"}),
    ("def f(**options): ...", "def f(): ...", {"f(**options)": "removed"}),
    ("def f(): ...", "def f(*words): ...", {"f(*words)": "added"}),
    ("def f(a: int): ...", "def f(a: int | None): ...", {"f(a)": "type-widened-input"}),
    ("def f(a: list[str]): ...", "def f(a: Iterable[str]): ...", {"f(a)": "type-widened-input"}),
    ("def f(a: Mapping[str, int]): ...", "def f(a: dict[str, int]): ...", {"f(a)": "type-narrowed-input"}),
    ("def f(a: Callable[[int], None]): ...", "def f(a: Callable[[int, str], None]): ...", {"f(a)": "retyped"}),
    ("def f(a: int): ...", "def f(a: str): ...", {"f(a)": "retyped"}),
    ("def f(a: tuple[int, ...]): ...", "def f(a: tuple[int]): ...", {"f(a)": "type-narrowed-input"}),
    ("def f(a: tuple[int]): ...", "def f(a: tuple[int, ...]): ...", {"f(a)": "type-widened-input"}),
    ("def f(a: typing.Optional[int]): ...", "def f(a: 'None | int'): ...", {}),
    # results
    ("def f() -> str: ...", "def f() -> str | None: ...", {"f": "type-widened-output"}),
    ("def f() -> str | None: ...", "def f() -> str: ...", {"f": "type-narrowed-output"}),
    ("def f() -> Sequence[str]: ...", "def f() -> tuple[str, ...]: ...", {"f": "type-narrowed-output"}),
    ("def f() -> str: ...", "def f() -> bytes: ...", {"f": "retyped"}),
    ("def f(): ...", "async def f(): ...", {"f": "async-changed"}),
    # classes
    ("class E(ValueError): ...", "class E(Exception): ...", {"E": "base-removed"}),
    ("class E(Exception): ...", "class E(KeyError): ...", {"E": "base-added"}),
    ("class E(Exception):\n code: str", "class E(Exception): ...", {"E.code": "removed"}),
    ("class A: ...", "class A:\n def __init__(self, x): ...", {"A(x)": "required"}),
    ("class A:\n def __init__(self, x): ...", "class A: ...", {"A(x)": "removed"}),
    ("@frozen\nclass A:\n x: int = 1", "@frozen\nclass A:\n x: int", {"A(x)": "default-lost"}),
    ("@frozen\nclass A:\n x: int", "@frozen\nclass A:\n x: int\n y: int = 0", {"A(y)": "added", "A.y": "added"}),
    ("class M(BaseModel): ...", "class M(BaseModel):\n x: int", {"M(x)": "required", "M.x": "added"}),
    ("class A:\n def m(self): ...", "class A: ...", {"A.m": "removed"}),
    ("class A:\n def __anext__(self): ...", "class A: ...", {"A.__anext__": "removed"}),
    ("class A:\n def m(self): ...", "class A:\n @property\n def m(self): ...", {"A.m": "kind-changed"}),
    ("class A:\n def m(self): ...", "class A:\n @classmethod\n def m(cls): ...", {"A.m": "kind-changed"}),
    ("class A:\n x: int", "class A:\n x: int | None", {"A.x": "type-widened-output"}),
    ("class A:\n @property\n def x(self) -> int: ...\n @x.setter\n def x(self, value): ...",
     "class A:\n @property\n def x(self) -> bool: ...\n @x.setter\n def x(self, value): ...",
     {"A.x": "type-narrowed-input"}),
    ("class A:\n @property\n def x(self) -> int: ...\n @x.setter\n def x(self, value): ...",
     "class A:\n @property\n def x(self) -> int: ...", {"A.x": "read-only"}),
    ("class A:\n @property\n def x(self) -> int: ...",
     "class A:\n @property\n def x(self) -> int: ...\n @x.setter\n def x(self, value): ...", {"A.x": "writable"}),
    ("class A:\n def m(self): ...", "class B:\n def m(self): ...\nclass A(B): ...", {"A": "base-added", "B": "added"}),
    ("class B:\n def m(self): ...\nclass A(B): ...", "class B:\n def m(self): ...\nclass A(B):\n def m(self): ...", {}),
    ("class B:\n def m(self): ...\nclass A(B): ...", "class B:\n def m(self): ...\nclass A(B):\n def m(self, x): ...",
     {"A.m(x)": "required"}),
    ("class B:\n def __init__(self, x): ...\nclass A(B): ...",
     "class B:\n def __init__(self, x): ...\nclass A(B):\n def __init__(self, x, y): ...", {"A(y)": "required"}),
    ("class B:\n def __init__(self, x): ...\nclass A(B):\n def __init__(self, x): ...",
     "class B:\n def __init__(self, x): ...\nclass A(B): ...", {}),
    ("class _B:\n x: int\nclass A(_B): ...", "class A:\n x: int", {}),
    ("class B: ...\nclass A(B): ...\ndef f(a: A): ...", "class B: ...\nclass A(B): ...\ndef f(a: B): ...",
     {"f(a)": "type-widened-input"}),
    # enumerations
    ("class E(enum.Enum):\n A = 1", "class E(enum.Enum):\n A = 1\n B = 2", {"E.B": "added"}),
    ("class E(enum.Enum):\n A = 1\n B = 2", "class E(enum.Enum):\n A = 1", {"E.B": "removed"}),
    ("class E(enum.IntEnum):\n A = 1", "class E(enum.IntEnum):\n A = 2", {"E.A": "value-changed"}),
    # interfaces, which plugins implement
    ("class P(typing.Protocol): ...", "class P(typing.Protocol):\n def m(self): ...", {"P.m": "must-be-implemented"}),
    ("class P(typing.Protocol):\n def m(self): ...", "class P(typing.Protocol):\n def m(self, x=1): ...",
     {"P.m(x)": "must-be-implemented"}),
    ("class P(typing.Protocol):\n def m(self) -> int: ...", "class P(typing.Protocol):\n def m(self) -> bool: ...",
     {"P.m": "type-narrowed-input"}),
    ("class P(typing.Protocol):\n def m(self, x: int): ...", "class P(typing.Protocol):\n def m(self, x: float): ...",
     {"P.m(x)": "type-widened-output"}),
    ("class B(typing.Protocol):\n def m(self): ...\nclass P(B, typing.Protocol): ...",
     "class B(typing.Protocol):\n def m(self): ...\nclass P(B, typing.Protocol):\n def m(self): ...", {}),
    ("class AContext(typing.Protocol): ...", "class AContext(typing.Protocol):\n def m(self): ...",
     {"AContext.m": "added"}),
    ("class A(abc.ABC):\n @abc.abstractmethod\n def n(self): ...\n def m(self): ...",
     "class A(abc.ABC):\n @abc.abstractmethod\n def n(self): ...\n @abc.abstractmethod\n def m(self): ...",
     {"A.m": "must-be-implemented"}),
    ("class A(abc.ABC):\n @abc.abstractmethod\n def n(self): ...\n @abc.abstractmethod\n def m(self): ...",
     "class A(abc.ABC):\n @abc.abstractmethod\n def n(self): ...\n def m(self): ...",
     {"A.m": "need-not-be-implemented"}),
    ("class A(abc.ABC):\n @abc.abstractmethod\n def n(self): ...",
     "class A(abc.ABC):\n @abc.abstractmethod\n def n(self): ...\n def m(self): ...", {"A.m": "added"}),
    ("class A(abc.ABC):\n def n(self): ...", "class A(abc.ABC):\n @abc.abstractmethod\n def n(self): ...",
     {"A": "kind-changed", "A.n": "must-be-implemented"}),
]  # fmt: skip


class Params(BaseModel):
    text: str
    count: int = 1


class Wider(BaseModel):
    text: str | None
    count: int = 1


def params(**fields):
    return create_model("Params", **{"text": (str, ...), "count": (int, 1), **fields})


def an_op(params=Params, result=dict[str, int], *, of="clock.now", **options):
    async def handler(params, ctx):
        """Return the time."""

    handler.__annotations__ = {"params": params, "ctx": OpContext, "return": result}
    return lambda api: api.op_facts(OpFamily("clock", (op(of, **options)(handler),)))


class ZoneUnknown(OpError):
    code = "clock.zone"


def zone_error(name="ZoneLost", code="clock.lost", bases=(OpError,), **details):
    return type(name, bases, {"code": code, "details": tuple(details), "__annotations__": details})


def family(*errors):
    return lambda api: api.op_facts(OpFamily("clock", (), errors=errors))


async def preview(params, ctx):
    return ""


def scope(values=("utc", "local"), defaults=(), fields=("zone",)):
    attributes = {name: attrs.field(default=None) for name in fields}
    made = attrs.make_class("ClockScope", attributes, bases=(Scope,), frozen=True)
    made.family, made.valid_values, made.defaults = "clock", {"zone": values} if values else {}, dict(defaults)
    return lambda api: api.capability_facts(OpFamily("clock", (), scope=made))


def hook(**changes):
    return lambda api: api.hook_facts({"input": attrs.evolve(HOOK_SPECS["input"], **changes)})


def table(**fields):
    return lambda api: api.setting_facts("setting:clock", create_model("Config", **fields))


def command(configure):
    return lambda api: api.command_facts(Command("tell", "", configure, lambda arguments: 0))


def opening(opens):
    return lambda api: api.command_facts(Command("tell", "", lambda parser: None, lambda arguments: 0, opens))


def a_tool(params=Params, name="clock.now", **options):
    async def handler(params, ctx):
        """Return the time."""

    handler.__annotations__ = {"params": params, "ctx": ToolContext}
    return lambda api: api.tool_facts(tool(name, **options)(handler))


def option(*names, **settings):
    return command(lambda parser: parser.add_argument(*names, **settings))


def entry(**fields):
    return lambda api: api.model_facts("session", [create_model("Entry", **{"type": (str, "note"), **fields})])


def wire(*required, **message):
    sent = {"log": {"text": "a", **message}}
    return lambda api: api.wire_facts(1, sent, {}, lambda _, name: name in ("text", *required))


def wire_of_the_host(**message):
    return lambda api: api.wire_facts(1, {}, {"call": message}, None)


@attrs.frozen
class Line:
    effect: "str"
    time: "str"


@attrs.frozen
class LaterLine(Line):
    effect: "str | None"
    ms: "float"


def line(record):
    return lambda api: api.record_facts("ledger:line", record, hidden=["time"])


def fact(path, **properties):
    return lambda api: {path: properties}


def both(one, other):
    return lambda api: one(api) | other(api)


@attrs.frozen
class ClockScope(Scope, family="clock"):
    zone: str | None = None


READ = {"requires": "clock", "scope": lambda params: ClockScope()}
DUE_BY = {"kind": "deprecation", "since": "1.0", "removed_in": "2.0"}
DUE = fact("deprecation:clock.now", **DUE_BY)
LATER = fact("deprecation:clock.now", kind="deprecation", since="1.0", removed_in="3.0")
AT_ONCE = fact("deprecation:clock.now", kind="deprecation", since="2.0", removed_in="2.0")


def announced(since, removed_in):
    return lambda api: {"deprecation:clock.now": {"kind": "deprecation", "since": since, "removed_in": removed_in}}


ERROR = {"kind": "error", "exit_codes": [1], "retryable": False, "classes": ["A"]}
CONTRACT = [
    # ops
    (an_op(), an_op(of="clock.later"), {"op:clock.now": "removed", "op:clock.later": "added"}),
    (an_op(), an_op(params(zone=(str, ...))), {"op:clock.now(zone)": "required"}),
    (an_op(), an_op(params(zone=(str, "utc"))), {"op:clock.now(zone)": "added"}),
    (an_op(), an_op(params(count=(int, ...))), {"op:clock.now(count)": "default-lost"}),
    (an_op(), an_op(params(text=(str, ""))), {"op:clock.now(text)": "default-gained"}),
    (an_op(), an_op(params(count=(int, 2))), {"op:clock.now(count)": "default-changed"}),
    (an_op(), an_op(Wider), {"op:clock.now(text)": "type-widened-input"}),
    (an_op(Wider), an_op(), {"op:clock.now(text)": "type-narrowed-input"}),
    (an_op(), an_op(params(text=(int, ...))), {"op:clock.now(text)": "retyped"}),
    (an_op(), an_op(result=dict[str, int | None]), {"op:clock.now()": "type-widened-output"}),
    (an_op(), an_op(result=dict[str, bool]), {"op:clock.now()": "retyped"}),
    (an_op(result=Wider), an_op(), {"op:clock.now()": "retyped"}),
    (an_op(result=Wider), an_op(result=Params), {"op:clock.now()": "type-narrowed-output"}),
    (an_op(result=Params), an_op(result=params(zone=(str, ...))), {"op:clock.now()": "type-narrowed-output"}),
    (an_op(result=params(zone=(str, ...))), an_op(result=Params), {"op:clock.now()": "type-widened-output"}),
    (an_op(), an_op(level=Level.CONTROLLED, idempotent=True), {"op:clock.now": "level-raised"}),
    (an_op(level=Level.CONTROLLED, idempotent=True), an_op(), {"op:clock.now": "level-lowered"}),
    (an_op(), an_op(idempotent=False), {"op:clock.now": "idempotence-lost"}),
    (an_op(idempotent=False), an_op(), {"op:clock.now": "idempotence-gained"}),
    (an_op(), an_op(timeout=5), {"op:clock.now": "time-limit-lowered"}),
    (an_op(timeout=5), an_op(timeout=6), {"op:clock.now": "time-limit-raised"}),
    (an_op(), an_op(result=None, fire_and_forget=True), {"op:clock.now": "changed", "op:clock.now()": "retyped"}),
    (an_op(), an_op(**READ), {"op:clock.now": "requirement-raised"}),
    (an_op(**READ), an_op(), {"op:clock.now": "requirement-dropped"}),
    (an_op(**READ), an_op(**READ, needs={"zone": ("utc",)}), {"op:clock.now": "requirement-raised"}),
    (an_op(**READ, needs={"zone": ("utc",)}), an_op(**READ, needs={"zone": ("utc", "cet")}),
     {"op:clock.now": "requirement-dropped"}),
    (an_op(**READ, needs={"zone": ("utc", "cet")}), an_op(**READ, needs={"zone": ("utc",)}),
     {"op:clock.now": "requirement-raised"}),
    (an_op(**READ), an_op(**READ, lower=[Lower(Level.SAFE, zone=LIMITED)]), {"op:clock.now": "level-lowered"}),
    (an_op(**READ, lower=[Lower(Level.SAFE, zone=LIMITED)]), an_op(**READ), {"op:clock.now": "level-raised"}),
    (an_op(), an_op(preview=preview), {"op:clock.now": "ability-added"}),
    (an_op(preview=preview), an_op(), {"op:clock.now": "ability-lost"}),
    (an_op(), an_op(internal=True), {"op:clock.now": "internal"}),
    (an_op(internal=True), an_op(), {"op:clock.now": "opened-to-skills"}),
    (family(UsageError), family(UsageError, ZoneUnknown),
     {"family:clock": "error-offered", "family:clock(ZoneUnknown)": "added"}),
    (family(UsageError, ZoneUnknown), family(UsageError),
     {"family:clock": "error-withdrawn", "family:clock(ZoneUnknown)": "removed"}),
    (family(zone_error()), family(zone_error("Lost")),
     {"family:clock(ZoneLost)": "removed", "family:clock(Lost)": "added"}),
    (family(zone_error(bases=(OpError, LookupError))), family(zone_error()),
     {"family:clock(ZoneLost)": "base-removed"}),
    (family(zone_error()), family(zone_error(code="clock.other")),
     {"family:clock": ["error-offered", "error-withdrawn"], "family:clock(ZoneLost)": "value-changed"}),
    (family(zone_error(zone=str)), family(zone_error()), {"family:clock(ZoneLost.zone)": "removed"}),
    (family(zone_error(zone=str)), family(zone_error(zone=int)), {"family:clock(ZoneLost.zone)": "retyped"}),
    (family(ZoneUnknown, zone_error(bases=(ZoneUnknown,))), family(ZoneUnknown, zone_error(bases=(OpError,))),
     {"family:clock(ZoneLost)": "base-removed"}),
    (an_op(egress=False), an_op(egress=lambda params: True), {"op:clock.now": "egress-added"}),
    (an_op(egress=lambda params: True), an_op(), {"op:clock.now": "egress-added"}),
    (an_op(egress=True), an_op(egress=False), {"op:clock.now": "egress-dropped"}),
    (an_op(), an_op(record=["text"]), {"op:clock.now": "more-recorded"}),
    (an_op(record=["text"]), an_op(), {"op:clock.now": "less-recorded"}),
    # capabilities
    (scope(), scope(fields=("zone", "unit")), {"capability:clock(unit)": "added"}),
    (scope(fields=("zone", "unit")), scope(), {"capability:clock(unit)": "removed"}),
    (scope(), scope(defaults={"zone": ("utc",)}), {"capability:clock(zone)": "default-changed"}),
    (scope(), scope(("utc",)), {"capability:clock(zone)": "values-narrowed"}),
    (scope(), scope(("utc", "local", "cet")), {"capability:clock(zone)": "values-widened"}),
    (scope(), scope(()), {"capability:clock(zone)": "values-widened"}),
    (scope(()), scope(), {"capability:clock(zone)": "values-narrowed"}),
    # hooks
    (hook(), hook(kind=Kind.COLLECT), {"hook:input": "hook-kind-changed"}),
    (hook(), hook(on_failure=Failure.REPORT), {"hook:input": "failure-policy-changed"}),
    (hook(), hook(on_failure=Failure.DENY), {"hook:input": ["failure-policy-changed", "guards-only"]}),
    (hook(on_failure=Failure.DENY), hook(), {"hook:input": ["failure-policy-changed", "opened-to-all"]}),
    (hook(deadline=5), hook(deadline=4), {"hook:input": "time-limit-lowered"}),
    (hook(may_return=(str,)), hook(may_return=(str, int)), {"hook:input": "answer-added"}),
    (hook(may_return=(str, int)), hook(may_return=(str,)), {"hook:input": "answer-lost"}),
    (hook(), hook(event=HOOK_SPECS["turn_start"].event),
     {"hook:input(text)": "removed", "hook:input(source)": "removed", "hook:input(typed)": "removed",
      "hook:input(run)": "added", "hook:input(index)": "added"}),
    # errors
    (fact("error:a.b", **ERROR), fact("error:a.b", **ERROR | {"exit_codes": [4]}), {"error:a.b": "exit-code-changed"}),
    (fact("error:a.b", **ERROR), fact("error:a.b", **ERROR | {"retryable": True}), {"error:a.b": "retryable-changed"}),
    (fact("error:a.b", **ERROR), fact("error:a.b", **ERROR | {"classes": ["A", "B"]}),
     {"error:a.b": "code-raised-by-more"}),
    (fact("error:a.b", **ERROR), fact("error:a.b", **ERROR | {"classes": ["B"]}),
     {"error:a.b": ["class-of-code-changed", "code-raised-by-more"]}),
    # settings and commands
    (table(zone=(str, "utc")), table(), {"setting:clock(zone)": "removed"}),
    (table(), table(zone=(str, "utc")), {"setting:clock(zone)": "added"}),
    (table(), table(zone=(str, ...)), {"setting:clock(zone)": "required"}),
    (table(zone=(int, 1)), table(zone=(bool, True)), {"setting:clock(zone)": ["default-changed", "retyped"]}),
    (table(), table(inner=(create_model("Inner", x=(int, 1)), None)), {"setting:clock.inner": "added"}),
    (option("--zone"), option("--zone", required=True), {"command:tell(--zone)": "required"}),
    (option("zone"), option("zone", nargs="?"), {"command:tell(zone)": ["changed", "optional"]}),
    (option("--zone"), option("--area"), {"command:tell(--zone)": "removed", "command:tell(--area)": "added"}),
    (option("--zone", default="utc"), option("--zone", default="cet"), {"command:tell(--zone)": "default-changed"}),
    (option("--zone"), option("--zone", default="cet"), {"command:tell(--zone)": "default-changed"}),
    (option("--zone", choices=["a"]), option("--zone", choices=["a", "b"]), {"command:tell(--zone)": "values-widened"}),
    (option("--json", action="store_true"), option("--json"), {"command:tell(--json)": "changed"}),
    (command(lambda parser: parser.add_subparsers().add_parser("now")), command(lambda parser: None),
     {"command:tell.now": "removed"}),
    (opening("host"), opening(""), {
        f"command:tell({one})": "removed"
        for one in ("--json", "--yes", "--set", "--isolation", "--strict", "--trust")
    }),
    # tools of plugins
    (a_tool(), a_tool(name="clock.later"), {"tool:clock.now": "removed", "tool:clock.later": "added"}),
    (a_tool(), a_tool(params(zone=(str, ...))), {"tool:clock.now(zone)": "required"}),
    (a_tool(), a_tool(level=Level.CONTROLLED), {"tool:clock.now": "level-raised"}),
    # formats
    (entry(), entry(text=(str, ...)), {"session:note(text)": "required"}),
    (entry(), entry(text=(str, "")), {"session:note(text)": "added"}),
    (entry(text=(str, ...)), entry(text=(str, "")), {"session:note(text)": "no-longer-promised"}),
    (entry(text=(str, ...)), entry(text=(str | None, ...)), {"session:note(text)": "type-widened-output"}),
    (entry(text=(str | None, ...)), entry(text=(str, ...)), {"session:note(text)": "type-narrowed-input"}),
    (wire(), wire(call="c1"), {"wire:worker.log(call)": "added"}),
    (wire(), wire("call", call="c1"), {"wire:worker.log(call)": "required"}),
    (wire(call="c1"), wire(), {"wire:worker.log(call)": "removed"}),
    (wire(error={"code": "a"}), wire(error={"code": 1}), {"wire:worker.log(error.code)": "retyped"}),
    (wire_of_the_host(number=1), wire_of_the_host(number=1, code={"a": 1}), {"wire:host.call(code)": "added",
     "wire:host.call(code.a)": "added"}),
    (wire_of_the_host(number=1), wire_of_the_host(), {"wire:host.call(number)": "removed"}),
    (line(Line), line(LaterLine), {"ledger:line(effect)": "type-widened-output", "ledger:line(ms)": "added"}),
    (line(LaterLine), line(Line), {"ledger:line(effect)": "type-narrowed-output", "ledger:line(ms)": "removed"}),
    (wire(params={"a": 1}), wire(params={"b": 1}), {}),
    # deprecations, in version 2.0
    (both(fact("op:clock.now", kind="op"), DUE), fact("x", kind="op"),
     {"op:clock.now": "removed-as-announced", "x": "added"}),
    (both(fact("op:clock.now(zone)", kind="field"), DUE), lambda api: {},
     {"op:clock.now(zone)": "removed-as-announced"}),
    (both(fact("op:clock.now(zone)", kind="field"), fact("deprecation:op:clock.now", **DUE_BY)), lambda api: {},
     {"op:clock.now(zone)": "removed-as-announced"}),
    (both(fact("op:clock.nows", kind="op"), DUE), lambda api: {}, {"op:clock.nows": "removed"}),
    (both(fact("op:clock.now", kind="op"), LATER), lambda api: {}, {"op:clock.now": "removed"}),
    (both(fact("op:clock.now", kind="op"), AT_ONCE), lambda api: {}, {"op:clock.now": "removed"}),
    (both(fact("op:clock.now", kind="op"), DUE), both(fact("op:clock.now", kind="op"), LATER),
     {"deprecation:clock.now": "changed"}),
    (both(fact("op:clock.now", kind="op"), announced("1.8", "1.10")), lambda api: {}, {"op:clock.now": "removed"}),
    *((lambda api: {}, announced(*versions), {"deprecation:clock.now": "added"})
      for versions in (("0.3", "0.5"), ("0.3.1", "0.5"), ("0.9", "1.0"), ("1.2", "2.0"), ("1.2", "3.0"))),
    *((lambda api: {}, announced(*versions), {"deprecation:clock.now": "ends-too-early"})
      for versions in (("0.3", "0.4"), ("0.3", "0.5.1"), ("1.2", "1.9"), ("1.2", "2.0rc1"), ("2.0", "2.0"))),
]  # fmt: skip


ADDITIONS = """
    ability-added added alias-widened answer-added base-added code-raised-by-more default-gained
    egress-dropped error-offered idempotence-gained level-lowered more-recorded need-not-be-implemented
    opened-to-all opened-to-skills
    optional passed-in-more-ways removed-as-announced requirement-dropped time-limit-raised
    type-narrowed-output type-widened-input values-widened writable
"""


@pytest.fixture
def api(import_page):
    """The functions that describe and compare."""
    names = ("python", "contract", "formats", "compare", "rules")
    return types.SimpleNamespace(
        **{key: value for name in names for key, value in vars(import_page(f"_api.{name}")).items()}
    )


def module(text, name="sideband_case"):
    """Return a module with this text, all of whose own public names are exported."""
    made = types.ModuleType(name)
    exec(HEAD, made.__dict__)
    imported = {*vars(made)}
    sys.modules[name] = made
    exec(f"from __future__ import annotations\n{text}", made.__dict__)
    made.__all__ = sorted(one for one in vars(made) if one not in imported and not one.startswith("_"))
    return made


@pytest.fixture
def describe(api, monkeypatch):
    """Return the descriptions of the names in texts, each of which is a module."""
    monkeypatch.setitem(sys.modules, "sideband_case", None)

    def run(*texts):
        return api.python_facts([module(text, f"sideband_case{'_' * n}") for n, text in enumerate(texts)])

    return run


def found(api, old, new):
    changes = {}
    for change in api.compare(old, new, version="2.0.dev1"):
        changes.setdefault(change.path, []).append(change.rule.name)
    return changes


def listed(expected, prefix=""):
    return {f"{prefix}{path}": [rules] if isinstance(rules, str) else rules for path, rules in expected.items()}


@pytest.mark.parametrize(("old", "new", "expected"), PYTHON)
def test_change_to_python_names_is_classified(api, describe, old, new, expected):
    assert found(api, describe(old), describe(new)) == listed(expected, "python:sideband_case.")


@pytest.mark.parametrize(("old", "new", "expected"), CONTRACT)
def test_change_to_the_contract_is_classified(api, old, new, expected):
    assert found(api, old(api), new(api)) == listed(expected)


def test_prepared_changes_cover_every_rule(api):
    used = [rule for *_, expected in (*PYTHON, *CONTRACT) for rules in listed(expected).values() for rule in rules]
    assert set(api.RULES) == set(used)


def test_existing_programs_work_after_these_changes_only(api):
    assert [name for name, rule in api.RULES.items() if rule.verdict is api.Verdict.ADDITION] == ADDITIONS.split()
