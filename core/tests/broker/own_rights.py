"""An op family `web`, and one that uses it with rights of its own."""

from types import SimpleNamespace

import anyio
import attrs
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval
from sideband.broker import Call
from sideband.ops import (
    Grant,
    OpContext,
    OpFamily,
    Scope,
    op,
)

NORTH, SOUTH = "web:host=north.example", "web:host=south.example"


class Request(BaseModel):
    host: str = "north.example"
    body: str = ""


@attrs.frozen
class WebScope(Scope, family="web"):
    host: str | None = None


@op("web.get", requires="web", scope=lambda params: WebScope(host=params.host), record=["host"])
async def get(params: Request, ctx: OpContext) -> str:
    return params.host


@op("geo.find", record=["host"])
async def find(params: Request, ctx: OpContext) -> str:
    return await ctx.dispatch("web.get", params.model_dump(exclude_unset=True), rights="own")


WEB = Plugin("op", "web", SimpleNamespace(sideband_ops=lambda: OpFamily("web", (get,), scope=WebScope)))


def geo(*uses, ops=(find,), distribution="sideband-geo", name="geo"):
    family = OpFamily(name, ops, uses=uses)
    return Plugin("op", name, SimpleNamespace(sideband_ops=lambda: family), distribution)


class Person:
    """An approver that keeps the requests, and gives the same answer to all."""

    def __init__(self, verdict="allow", scope="always", reason="not today"):
        self.requests, self.reason = [], reason
        self.answer = Approval(verdict, scope, by="me")

    async def __call__(self, request):
        self.requests.append(request)
        return self.answer if self.answer.allowed else Approval("deny", reason=self.reason)

    @property
    def asked(self):
        return [tuple(one.effect["capabilities"]) for one in self.requests]


def giving(*capabilities):
    return {"grants": {"plugin:geo": capabilities}}


async def find_on(host, name="north.example"):
    """Call the op as a skill without any right would."""
    return await host.op("geo.find", {"host": name}, grants=[])


async def find_in(host, origin, op="geo.find", name="north.example", *, body="", **options):
    """Call the op in a call of this origin, without any right."""
    call = Call("call", Grant(), "caller", origin, anyio.current_time() + 60, **options)
    return await host.broker.dispatch(call, op, {"host": name, "body": body})
