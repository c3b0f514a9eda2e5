"""``sideband audit why`` for effects without an agent: grants, sibling effects and child effects."""

import json

import pytest

CODE = (
    "from sideband.skill import crypto, progress, tool\n@tool\nasync def digest(text: str) -> int:\n"
    "    await progress.report(message='on it')\n    return len(await crypto.hash(data=text))\n"
)


@pytest.fixture
def effect(sideband, make_skill):
    """The id of an effect of a call."""
    skill = make_skill("digests", CODE, "crypto:op=hash")
    done = sideband("call", "digests.digest", "text=abc", "--skill-dir", skill, "--grant", "crypto:op=hash", "--json")
    assert done.returncode == 0, done.stderr
    effects = json.loads(done.stdout)["effects"]
    return next(one["id"] for one in effects if one["op"] == "crypto.hash")


def test_why_shows_the_source_of_the_grant_and_the_effects_of_the_call(sideband, effect):
    text = sideband("audit", "why", effect, COLUMNS="120").stdout
    assert "allowed by  crypto:op=hash, granted by the caller" in text
    assert "caller      digests.digest, for user" in text
    assert "effects of the call" in text
    assert "progress.report" in text
    data = json.loads(sideband("audit", "why", effect, "--json").stdout)
    assert [one["op"] for one in data["effects"]] == ["progress.report", "crypto.hash"]
    assert data["takes_back"] is None


POST = """
from pydantic import BaseModel

from sideband import Level, OpContext, OpFamily, op


class Letter(BaseModel):
    text: str = "hello"


async def would(params, ctx):
    return f"send `{params.text}`"


@op("post.send", level=Level.RESTRICTED, preview=would)
async def send(params: Letter, ctx: OpContext) -> None:
    await ctx.dispatch("post.stamp", {})


@op("post.stamp", level=Level.CONTROLLED)
async def stamp(params: Letter, ctx: OpContext) -> None:
    pass


def sideband_ops():
    return OpFamily(name="post", ops=(send, stamp))
"""
ASKER = """
from sideband import hookimpl
from sideband.hooks import Ask


class Asker:
    @hookimpl
    def op_call(self, event):
        return Ask("Really?") if event.op == "post.send" else None


def sideband_guards():
    return [Asker]
"""


def test_why_shows_child_effects_and_the_preview_of_an_approval(sideband, plugin):
    environment = {**plugin("post", "op", POST), **plugin("asker", "guard", ASKER)}
    done = sideband("op", "post.send", "text=dear all", "--yes", "--json", **environment)
    assert done.returncode == 0, done.stderr
    assert "preview: send `dear all`" in done.stderr
    effects = {one["op"]: one["id"] for one in json.loads(done.stdout)["effects"]}
    text = sideband("audit", "why", effects["post.send"], COLUMNS="120", **environment).stdout
    assert f"dispatched  {effects['post.stamp']}: post.stamp, done" in text
    assert "(--yes): approve, shown: send `dear all`" in text
    text = sideband("audit", "why", effects["post.stamp"], COLUMNS="120", **environment).stdout
    assert f"parent      {effects['post.send']}" in text
    data = json.loads(sideband("audit", "why", effects["post.send"], "--json", **environment).stdout)
    assert data["parts"] == [{"effect": effects["post.stamp"], "op": "post.stamp", "status": "done"}]
