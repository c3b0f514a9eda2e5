"""The amounts that the model calls of a skill's call have used, which are compared with those of its capabilities.

A call that an op made with rights of its caller shares the account of it. Otherwise each call that a model
makes would have a budget of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import anyio
from attrs import define, field
from sideband.contexts import HandlerContext
from sideband.messages import Usage
from sideband.providers import ModelRequest

from ._errors import ModelBudgetSpent
from ._scope import LlmScope

_MOST = 10_000
_ANY = "999999999999"
_CHARACTERS_PER_TOKEN = 4
_LEAST = Decimal("0.000001")


@define(eq=False)
class Account:
    """What the model calls of one call of a skill have used.

    Attributes:
        money: US dollars.
        tokens: input and output tokens.
        lock: held by a model call: what it uses is known after it, so another one must wait.
        limits_money: whether the capability of the current model call limits money.
    """

    money: Decimal = Decimal(0)
    tokens: int = 0
    lock: anyio.Lock = field(factory=anyio.Lock, repr=False)
    limits_money: bool = field(default=False, init=False)
    _streamed: int = field(default=0, init=False)
    _ctx: HandlerContext | None = field(default=None, init=False, repr=False)

    def begin(self, model: str, ctx: HandlerContext) -> None:
        """Check that a capability allows a further model call.

        Raises:
            ModelBudgetSpent: if none does.
        """
        tokens, money = str(self.tokens + 1), f"{min(self.money + _LEAST, Decimal(_ANY)):f}"
        if not ctx.allows(LlmScope(model=model, money=money, tokens=tokens)):
            raise ModelBudgetSpent(model, self.tokens, float(self.money))
        self.limits_money = not ctx.allows(LlmScope(model=model, money=_ANY, tokens=tokens))
        self._streamed, self._ctx = 0, ctx

    async def emit(self, part: Mapping[str, Any]) -> None:
        """Count a part of the answer, and emit it."""
        self._streamed += sum(len(value) for value in part.values() if isinstance(value, str))
        if self._ctx is not None:
            await self._ctx.emit(part)

    def estimated(self, request: ModelRequest) -> Usage:
        """Return about what a model call has used that was cancelled: providers report it only at the end."""
        sent = len(request.model_dump_json(exclude={"options"}))
        return Usage(input=1 + sent // _CHARACTERS_PER_TOKEN, output=1 + self._streamed // _CHARACTERS_PER_TOKEN)

    def charge(self, usage: Usage) -> None:
        """Add what a model call has used."""
        self.tokens += usage.context
        self.money += round(Decimal(usage.cost or 0), 9)


class Accounts:
    """The accounts of the calls of a host."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Account] = OrderedDict()

    @asynccontextmanager
    async def opened(self, model: str, ctx: HandlerContext) -> AsyncIterator[Account | None]:
        """Open the account of a call for one model call; ``None`` if a capability allows any amount.

        Raises:
            ModelBudgetSpent: if no capability allows a further model call.
        """
        if ctx.allows(LlmScope(model=model, money=_ANY, tokens=_ANY)):
            yield None
            return
        account = self._of(ctx)
        async with account.lock:
            account.begin(model, ctx)
            yield account

    def _of(self, ctx: HandlerContext) -> Account:
        account = self._known.get(ctx.holder)
        if account is None:
            account = self._known[ctx.holder] = Account()
            if ctx.call == ctx.holder:
                ctx.on_call_end(self._forget(ctx.holder))
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return account

    def _forget(self, holder: str) -> Any:
        async def forget() -> None:
            self._known.pop(holder, None)

        return forget
