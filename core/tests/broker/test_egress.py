"""Egress checks: a known secret, in any encoded form, is sent only to the origins that it is bound to."""

import base64
import json
from urllib.parse import quote

import pytest
from attrs import frozen
from pydantic import BaseModel
from sideband.ops import Credential, EgressRefused, Level, OpContext, OpDenied, Scope, op

pytestmark = pytest.mark.anyio

VALUE = "s3cr3t/canary+7f3a9c51"
HOME, AWAY = "https://api.example.org", "https://evil.example"


class Sending(BaseModel):
    audience: str | None = None
    content: str | bytes = ""


class Nothing(BaseModel):
    pass


@frozen
class SecretsScope(Scope, family="secrets"):
    name: str | None = None
    mode: str | None = None


@pytest.fixture
def mail(family):
    """Return a plugin with an op that calls ``check_egress`` before it sends."""

    @op("mail.send", level=Level.RESTRICTED)
    async def send(params: Sending, ctx: OpContext) -> str:
        ctx.check_egress(params.audience, {"body": params.content})
        return "sent"

    return family("mail", send)


FORMS = {
    "plain": VALUE,
    "within a text": f"token={VALUE};",
    "bytes": VALUE.encode(),
    "percent": quote(VALUE, safe=""),
    "percent of every byte": "".join(f"%{byte:02x}" for byte in VALUE.encode()),
    "base64": base64.b64encode(VALUE.encode()).decode(),
    "base64 in the middle": base64.b64encode(b"x:" + VALUE.encode() + b":y").decode(),
    "base64 for URLs": base64.urlsafe_b64encode(VALUE.encode()).decode(),
    "hexadecimal": VALUE.encode().hex(),
    "upper hexadecimal": VALUE.encode().hex().upper(),
    "JSON in JSON": json.dumps(json.dumps({"token": VALUE})),
}


@pytest.mark.parametrize("form", FORMS)
async def test_secret_is_not_sent_to_an_origin_it_is_not_bound_to(make_host, mail, form):
    async with make_host(mail) as host:
        host.redactor.protect(VALUE, "canary", origins=[HOME])
        with pytest.raises(EgressRefused) as caught:
            await host.op("mail.send", {"audience": AWAY, "content": FORMS[form]})
        assert await host.op("mail.send", {"audience": HOME, "content": FORMS[form]}) == "sent"
    assert VALUE not in str(caught.value)


async def test_destination_without_an_audience_gets_no_secret(make_host, mail):
    async with make_host(mail) as host:
        host.redactor.protect(VALUE, "canary", origins=[HOME])
        with pytest.raises(EgressRefused):
            await host.op("mail.send", {"content": VALUE})


async def test_secret_without_origins_is_not_sent_anywhere(make_host, mail):
    async with make_host(mail) as host:
        host.redactor.protect(VALUE, "canary")
        with pytest.raises(EgressRefused):
            await host.op("mail.send", {"audience": HOME, "content": VALUE})


async def test_origins_of_a_secret_protected_twice_are_merged(make_host, mail):
    async with make_host(mail) as host:
        host.redactor.protect(VALUE, "canary")
        host.redactor.protect(VALUE, "canary", origins=[HOME])
        assert await host.op("mail.send", {"audience": HOME, "content": VALUE}) == "sent"


async def test_refusal_names_secret_part_and_audience_and_is_recorded(make_host, mail, outcomes):
    async with make_host(mail) as host:
        host.redactor.protect(VALUE, "canary", origins=[HOME])
        with pytest.raises(EgressRefused) as caught:
            await host.op("mail.send", {"audience": AWAY, "content": VALUE})
    error = caught.value
    assert (error.code, error.exit_code, isinstance(error, OpDenied)) == ("op.egress", 3, True)
    assert "the body contains the secret `canary`" in error.message
    assert "https://evil.example" in error.message
    assert "`auth`" in error.hint
    assert outcomes()[0]["error"]["code"] == "op.egress"


async def test_credential_is_sent_only_to_its_audience_and_origins(make_host, family):
    class Resolver:
        async def resolve(self, handle, audience, ctx):
            return Credential(handle, VALUE, origins=("https://second.example",))

    @op("mail.log_in", requires="secrets", level=Level.MONITORED)
    async def log_in(params: Nothing, ctx: OpContext) -> list[str]:
        await ctx.credential("canary", HOME)
        went = []
        for audience in (HOME, "https://second.example", AWAY):
            try:
                ctx.check_egress(audience, {"body": VALUE})
            except EgressRefused:
                continue
            went.append(audience)
        return went

    @op("secrets.list", level=Level.SAFE)
    async def listed(params: Nothing, ctx: OpContext) -> None:
        pass

    secrets = family("secrets", listed, scope=SecretsScope, credentials=Resolver())
    async with make_host(secrets, family("mail", log_in)) as host:
        assert await host.op("mail.log_in", {}) == [HOME, "https://second.example"]


@pytest.fixture
def cutter(family):
    """Return a plugin with an op that calls ``check_cut`` before it returns a part."""

    @op("parts.cut", level=Level.SAFE)
    async def cut(params: Cut, ctx: OpContext) -> str:
        content = params.content.encode()
        ctx.check_cut(content[: params.at], content[params.at :])
        return "cut"

    return family("parts", cut)


class Cut(BaseModel):
    content: str
    at: int


@pytest.mark.parametrize("form", [name for name in FORMS if name != "bytes"])
async def test_cut_inside_a_secret_is_refused_in_every_form(make_host, cutter, form):
    content = FORMS[form]
    async with make_host(cutter) as host:
        host.redactor.protect(VALUE, "canary", origins=[HOME])
        for at in (len(content) // 2, len(content) * 2 // 3):
            with pytest.raises(EgressRefused, match="begins or ends inside"):
                await host.op("parts.cut", {"content": content, "at": at})


async def test_cut_beside_a_secret_is_allowed(make_host, cutter):
    async with make_host(cutter) as host:
        host.redactor.protect(VALUE, "canary")
        for at in (0, 3, 6, 6 + len(VALUE), 8 + len(VALUE)):
            assert await host.op("parts.cut", {"content": f"before{VALUE}after", "at": at}) == "cut"
