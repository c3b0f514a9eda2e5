"""Fixtures for approvals: letters, a guard that asks about each, and functions that ask and approve."""

import anyio
import anyio.lowlevel
import attrs
import pytest
from pydantic import BaseModel, Field
from sideband import hookimpl
from sideband.approvals import Approval, ApprovalNeeded
from sideband.broker import Call
from sideband.hooks import Ask
from sideband.ops import Grant, Level, OpContext, Origin, Scope, op

LETTER = {"to": "ann", "text": "hello"}


class Letter(BaseModel):
    to: str
    text: str = ""
    copies: int | float | bool = 1
    pin: str = Field(default="", repr=False)
    stamps: dict[int | str, str] = {}
    enclosed: bytes | dict = b""
    hidden: str = Field(default="", exclude=True)
    readers: set[str] = set()


@attrs.frozen
class MailScope(Scope, family="mail"):
    to: str | None = None


@hookimpl
def op_call(event):
    return Ask("Really?") if event.op.startswith("mail.") else None


class Post:
    """Letters, a guard that asks about each, and what a test does with the requests.

    Attributes:
        plugins: the family of ops, and the guard.
        sent: the texts of the letters that were sent.
        previewed: those for which a preview was made.
    """

    def __init__(self, family, hook):
        self.sent = []
        self.previewed = []

        async def preview(params, ctx):
            self.previewed.append(params.text)
            return f"to {params.to}"

        @op(
            "mail.send",
            requires="mail",
            scope=lambda params: MailScope(to=params.to),
            level=Level.RESTRICTED,
            record=["to"],
            preview=preview,
        )
        async def send(params: Letter, ctx: OpContext) -> int:
            self.sent.append(params.text)
            return len(self.sent)

        @op("mail.look", level=Level.SAFE)
        async def look(params: Letter, ctx: OpContext) -> int:
            return len(self.sent)

        self.plugins = family("mail", send, look, scope=MailScope), hook("careful", op_call)

    @staticmethod
    def call(session="s", run="r"):
        """Return a call of an agent's run."""
        origin = Origin(session=session, run=run)
        return Call("1", Grant.parse(["mail"]), "d", origin, anyio.current_time() + 600)

    @staticmethod
    async def ask(host, params=LETTER, *, call=None, **options):
        """Dispatch an effect without an approver, and return the id of its request."""
        sending = host.broker.dispatch(call, "mail.send", params) if call else host.op("mail.send", params, **options)
        with pytest.raises(ApprovalNeeded) as caught:
            await sending
        return caught.value.request.id

    async def approve(self, host, params=LETTER, scope="once", **options):
        """Dispatch an effect without an approver, and approve it."""
        identifier = await self.ask(host, params, **options)
        return await host.approvals.answer(identifier, Approval("allow", scope, by="Ann"))

    @staticmethod
    async def rewrite(host, identifier, *, request=(), **changes):
        """Change the stored document of a request, and these fields of the request itself."""
        value = (await host.store.get(f"approval/{identifier}")).value
        changed = {**value, **changes, "request": {**value["request"], **dict(request)}}
        await host.store.put(f"approval/{identifier}", changed)

    @staticmethod
    def answering(*answers):
        """Return an approver with these answers, the last one again and again, which keeps the requests."""
        left = list(answers)

        async def approver(request):
            approver.asked.append(request)
            await anyio.lowlevel.checkpoint()
            return left.pop(0) if len(left) > 1 else left[0]

        approver.asked = []
        return approver

    @staticmethod
    def grant_request(host, *, tool="look", **origin):
        """Return a request for the grant of a skill."""
        effect = {"holder": "d1", "name": "reader", "tool": tool}
        return host.approvals.request(
            "grant",
            "skill:reader",
            "Grant it?",
            effect,
            origin=Origin(**origin),
            code="d1",
            grants=["mail:to=ann"],
        )


@pytest.fixture
def post(family, hook):
    return Post(family, hook)
