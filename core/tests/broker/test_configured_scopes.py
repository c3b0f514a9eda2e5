"""The scope that an op requests may depend on the configuration of its plugin, and an op without one is denied."""

from types import SimpleNamespace

import pytest
from attrs import frozen
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.approvals import Approval
from sideband.hooks import Ask
from sideband.ops import Level, Lower, OpContext, OpDenied, OpFailed, OpFamily, Scope, op
from sideband.plugins import PluginInvalid

pytestmark = pytest.mark.anyio


class Config(BaseModel):
    host: str = "mail.example"


class Letter(BaseModel):
    to: str = "ann"


@frozen
class MailScope(Scope, family="mail"):
    host: str | None = None
    to: str | None = None


def mail(scope, *, configured=True, **options):
    """Return a plugin with the op `mail.send`, whose scope this function computes."""

    @op("mail.send", requires="mail", level=Level.CONTROLLED, scope=scope, **options)
    async def send(params: Letter, ctx: OpContext) -> str:
        return f"sent to {params.to}"

    module = SimpleNamespace(sideband_ops=lambda: OpFamily("mail", (send,), scope=MailScope))
    if configured:
        module.Config = Config
    return Plugin("op", "mail", module)


def configured(params, config):
    return MailScope(host=config.host, to=params.to)


async def test_scope_has_the_values_of_the_configuration(make_host):
    settings = {"plugins": {"mail": {"host": "mx.example"}}}
    async with make_host(mail(configured), settings=settings) as host:
        assert await host.op("mail.send", {}, grants=["mail:host=mx.example"]) == "sent to ann"
        with pytest.raises(OpDenied, match=r"`mail:host=mx\.example,to=ann` is not granted"):
            await host.op("mail.send", {}, grants=["mail:host=mail.example"])


async def test_scope_has_the_defaults_of_the_configuration(make_host):
    async with make_host(mail(configured)) as host:
        assert await host.op("mail.send", {}, grants=["mail:host=mail.example"]) == "sent to ann"


async def test_level_depends_on_the_configured_scope(make_host, hook):
    levels = []

    @hookimpl
    def op_call(event):
        levels.append(event.level)

    family = mail(configured, lower=[Lower(Level.SAFE, host=("mail.example",))])
    for settings in ({}, {"plugins": {"mail": {"host": "mx.example"}}}):
        async with make_host(family, hook("levels", op_call), settings=settings) as host:
            await host.op("mail.send", {}, grants=["mail"])
    assert levels == [Level.SAFE, Level.CONTROLLED]


@pytest.mark.parametrize(
    ("scope", "offered"), [(configured, "mail:host=mail.example,to=ann"), (lambda params: [], "mail")]
)
async def test_question_offers_a_grant_with_the_scope(make_host, hook, scope, offered):
    requests = []

    @hookimpl
    def op_call(event):
        return Ask("send it?")

    async def approver(request):
        requests.append(request)
        return Approval("allow")

    async with make_host(mail(scope), hook("careful", op_call), approver=approver) as host:
        await host.op("mail.send", {}, grants=["mail"])
    assert requests[0].grants["always"] == (offered,)


@pytest.mark.parametrize("configured", [False, True], ids=["no Config", "Config"])
async def test_parameter_config_requires_a_configuration(make_host, configured):
    async with make_host(mail(lambda params, config: MailScope(), configured=configured)) as host:
        if configured:
            assert await host.op("mail.send", {}, grants=["mail"])
            return
        with pytest.raises(PluginInvalid, match="`scope` takes `config`, but the plugin has no `Config`"):
            await host.plugins.load("op", "mail")


async def test_second_parameter_with_another_name_keeps_its_default(make_host):
    async with make_host(mail(lambda params, host="mx.example": MailScope(host=host))) as host:
        assert await host.op("mail.send", {}, grants=["mail:host=mx.example"])


@pytest.mark.parametrize(
    ("scope", "problem"),
    [
        (lambda params: 1 / 0, "failed: ZeroDivisionError: division by zero"),
        (lambda params: None, "failed: TypeError: 'NoneType' object is not iterable"),
        (lambda params: "mail", "failed: a str is not a Scope"),
        (lambda params: [MailScope(), 3], "failed: a int is not a Scope"),
    ],
)
async def test_op_whose_scope_cannot_be_computed_is_denied(make_host, outcomes, scope, problem):
    async with make_host(mail(scope)) as host:
        with pytest.raises(OpDenied, match=problem) as caught:
            await host.op("mail.send", {}, grants=["mail"])
    assert "author of the plugin `mail`" in caught.value.hint
    (line,) = outcomes()
    assert line["status"] == "denied"


async def test_own_error_of_a_scope_is_passed_on(make_host, outcomes):
    def scope(params):
        raise OpFailed("there is no such address", code="mail.address")

    async with make_host(mail(scope)) as host:
        with pytest.raises(OpFailed, match="there is no such address") as caught:
            await host.op("mail.send", {}, grants=["mail"])
    assert caught.value.code == "mail.address"
    (line,) = outcomes()
    assert line["grant"] == ["mail"]


async def test_op_that_requests_no_scope_needs_a_capability_of_the_family(make_host):
    async with make_host(mail(lambda params: [])) as host:
        assert await host.op("mail.send", {}, grants=["mail:to=bob"]) == "sent to ann"
        with pytest.raises(OpDenied, match="`mail` is not granted"):
            await host.op("mail.send", {}, grants=[])
