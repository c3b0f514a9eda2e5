"""What is known so far of one dispatch, on its way through the broker."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from attrs import Factory, define, field
from pydantic import BaseModel

from ..ops import Grant, Level, OpError, Origin
from ._call import Call
from ._errors import as_op_error
from ._lookup import BoundOp


@define(eq=False)
class Dispatch:
    """One dispatch. The broker's steps fill in what they find out.

    Attributes:
        grant: the rights that it has: the call's, or narrower ones.
        key: the idempotency key, if there is one.
        recorded: the parameters as the ledger may hold them.
        covering: the capabilities that allowed it.
        intended: whether its intent is in the ledger.
        decisions: what the guards said.
        note: what the op has noted so far.
        within: the effect whose op asks for this one.
    """

    call: Call
    op: str
    effect: str
    grant: Grant = Factory(lambda self: self.call.grant, takes_self=True)
    origin: Origin = Factory(lambda self: self.call.origin, takes_self=True)
    started: float = field(factory=perf_counter)
    key: str | None = None
    bound: BoundOp | None = None
    params: BaseModel | None = None
    recorded: dict[str, Any] = field(factory=dict)
    covering: list[str] = field(factory=list)
    intended: bool = False
    decisions: list[dict[str, Any]] = field(factory=list)
    note: dict[str, Any] = field(factory=dict)
    within: str | None = None

    @property
    def found(self) -> BoundOp:
        """The op, which every step after the look-up has."""
        assert self.bound is not None  # noqa: S101  a step before the look-up that asks for it is a defect
        return self.bound

    @property
    def valid(self) -> BaseModel:
        """The parameters, which every step after validation has."""
        assert self.params is not None  # noqa: S101  a step before validation that asks for them is a defect
        return self.params

    @property
    def level(self) -> Level | None:
        """How much the op can do, if there is such an op."""
        return self.bound.spec.level if self.bound else None

    @property
    def plugin(self) -> str | None:
        """Whose op it is, if there is such an op."""
        return self.bound.plugin.record.name if self.bound else None

    def error(self, raised: Exception) -> OpError:
        """The error that it ends with, for what code of the plugin raised."""
        return as_op_error(raised, op=self.op, plugin=self.plugin)
