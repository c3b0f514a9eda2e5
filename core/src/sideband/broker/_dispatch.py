"""The state of a dispatch on its way through the broker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any

from anyio import CancelScope
from attrs import Factory, define, field, frozen
from pydantic import BaseModel

from ..contexts import Lease, SkillUses
from ..contexts._editions import Edition
from ..ops import Capability, ContextRevoked, Grant, Level, OpError, Origin
from ..ops._from_host import passing
from ..ops._spec import Handler
from ..plugins import PluginRecord
from ..store import Reservation
from ._call import Call
from ._errors import as_op_error
from ._lookup import BoundOp
from ._values import passed_data


@frozen
class RightsOwner:
    """A plugin that dispatches an op with rights of its own, or with those of a skill.

    Attributes:
        record: the record of the plugin.
        uses: the capabilities that it declares.
        skill: the skill to which they are given instead of the plugin.
    """

    record: PluginRecord
    uses: tuple[str, ...]
    skill: SkillUses | None = None

    @property
    def name(self) -> str:
        """The name in the configuration and in records: ``plugin:NAME``, or the name of the skill."""
        return f"plugin:{self.record.name}" if self.skill is None else self.skill.key

    @property
    def holder(self) -> str:
        """The name under which grants are remembered. That of a skill is its digest, which a change changes."""
        return self.record.holder if self.skill is None else self.skill.digest


@define(eq=False)
class Dispatch:
    """One dispatch. The steps of the broker fill in the fields.

    Attributes:
        grant: the grant of the call, or a narrower one.
        key: the idempotency key, if any.
        digest: the digest of the parameters that the caller passed, if it has a key.
        claimed: whether the key is claimed. That of a read only names its recorded answer.
        recorded: the recordable parameters.
        reported: the fields of the result that observers get.
        covering: the capabilities that allowed it.
        reached: the level that it reaches with its grant.
        used: these capabilities, and those that it and its child effects used while running.
        intended: whether its intent is in the ledger.
        decisions: the answers of the guards.
        note: the notes that the caller and the op have made so far.
        within: the id of the enclosing effect, if another op made this dispatch.
        decided: whether guards have decided about it in an attempt that was interrupted.
        owner: the plugin whose own rights it gets, instead of those of the call.
        sources: who gave each of these rights.
        reserved: what guards reserved for it, given back if it does not begin.
        lease: the lease of what dispatches it; ``None`` for a worker, which cannot dispatch too late.
        edition: the edition of plugins that its op is looked up in.
        recorded_handler: what answers it from a cassette, in place of the op.
    """

    call: Call
    op: str
    effect: str
    grant: Grant = Factory(lambda self: self.call.grant, takes_self=True)
    origin: Origin = Factory(lambda self: self.call.origin, takes_self=True)
    started: float = field(factory=perf_counter)
    key: str | None = None
    digest: str = ""
    claimed: bool = True
    bound: BoundOp | None = None
    params: BaseModel | None = None
    recorded: dict[str, Any] = field(factory=dict)
    reported: dict[str, Any] = field(factory=dict)
    covering: list[str] = field(factory=list)
    reached: Level | None = None
    used: set[Capability] = field(factory=set)
    intended: bool = False
    decisions: list[dict[str, Any]] = field(factory=list)
    note: dict[str, Any] = Factory(lambda self: dict(self.call.note), takes_self=True)
    within: str | None = None
    decided: bool = Factory(lambda self: self.call.decided, takes_self=True)
    owner: RightsOwner | None = None
    sources: Mapping[str, str] = field(factory=dict)
    reserved: dict[str, Reservation] = field(factory=dict)
    lease: Lease | None = None
    edition: Edition | None = None
    recorded_handler: Handler | None = None

    @property
    def found(self) -> BoundOp:
        """The op. It is available after the look-up."""
        assert self.bound is not None  # noqa: S101  using it before the look-up is a bug
        return self.bound

    @property
    def valid(self) -> BaseModel:
        """The validated parameters. They are available after validation."""
        assert self.params is not None  # noqa: S101  using them before validation is a bug
        return self.params

    def passed(self) -> dict[str, Any]:
        """See ``TapedDispatch``."""
        return passed_data(self.valid, passing(self.found.spec.from_host))

    def answer_with(self, handler: Handler, cassette: str) -> None:
        """Let a cassette answer it, in place of its op."""
        # Nothing happens, so no key is claimed: the same request without a cassette must not get this answer.
        self.recorded_handler, self.key, self.digest = handler, None, ""
        self.note["cassette"] = cassette

    @property
    def level(self) -> Level | None:
        """The level of the use, or that of the op before its grant was checked; ``None`` before the look-up."""
        return self.reached if self.reached is not None or self.bound is None else self.bound.spec.level

    @property
    def plugin(self) -> str | None:
        """The name of the op's plugin, or ``None`` before the look-up."""
        return self.bound.plugin.record.name if self.bound else None

    @property
    def package(self) -> str:
        """The distribution and version of the op's plugin, or nothing before the look-up."""
        return self.bound.plugin.record.package if self.bound else ""

    @property
    def effect_key(self) -> str | None:
        """The idempotency key; that of its attempt for a read, which is not claimed. ``None`` without one."""
        attempt = self.call.attempt
        return self.key if self.key is not None or attempt is None else attempt.key_of(self.effect)

    def leaves_machine(self, params: Any) -> bool:
        """Return whether it may send data to another machine, with these validated parameters; true if unknown.

        Args:
            params: the parameters, or ``None`` if they are invalid or unknown.
        """
        return self.bound is None or self.bound.spec.leaves_machine(params, self.bound.plugin.config)

    def givers(self) -> tuple[str, ...]:
        """Return whose rights the covering capabilities are and who gave them, as far as it is known."""
        if self.owner is None:
            return self.call.givers(self.covering)
        own = self.owner.name
        return tuple(f"{own} {self.sources.get(one, '')}".rstrip() for one in self.covering)

    def check_lease(self) -> None:
        """Check that the context that dispatches it may still be used.

        Raises:
            ContextRevoked: if it may not.
        """
        if self.lease is not None and self.lease.is_over():
            raise ContextRevoked(self.op)

    def leave(self, used: set[Capability] | None) -> None:
        """Leave the edition, and add to what the op that dispatched it has used.

        Args:
            used: what that op has used; ``None`` if another dispatched it.
        """
        if self.edition is not None:
            self.edition.leave()
        if used is not None and self.owner is None:  # the caller need not have what the plugin used of its own
            used |= self.used

    async def give_back(self) -> None:
        """Give back what guards reserved for it."""
        with CancelScope(shield=True):
            for one in self.reserved.values():
                with suppress(Exception):  # it stays taken until its window has passed
                    await one.give_back()

    def error(self, raised: Exception) -> OpError:
        """Return the typed error for an exception that the plugin's code raised."""
        return as_op_error(raised, op=self.op, plugin=self.plugin, package=self.package)
