"""The sessions of children: those of a call that may run again are kept until it has ended, others are in memory.

Kept ones are in a part of the store that belongs to the call. So no session that is listed, opened, resumed or imported
can be that of a child. Their ids are derived from the call, its seed and the child's task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

import anyio
from attrs import field, frozen
from sideband.approvals import Approvals
from sideband.broker import Attempt
from sideband.ledger import query
from sideband.ops import EffectUnknown, Level
from sideband.store import Store, StorePart

from ._memory_store import MemoryStore
from .sessions import new_id
from .sessions._session_store import delete_within

CHILD_OP = "agent.child"
_MAX_RECORDS = 10_000


@frozen
class ChildSession:
    """Where the session of a child is kept.

    Attributes:
        id: the id of the session.
        store: the part of a store that contains it.
        call: the tool call that the child works for, ``session:run:step`` of its parent; ``None`` for no call.
    """

    id: str
    store: Store = field(repr=False)
    call: str | None

    @classmethod
    def in_memory(cls, call: str | None = None) -> Self:
        """Return a session in memory, which ends with the child."""
        return cls(new_id(), MemoryStore(), call)

    async def was_begun(self) -> bool:
        """Return whether an earlier attempt began the child."""
        return await self.store.get(self._tools) is not None

    async def begin(self, tools: Sequence[str]) -> Sequence[str]:
        """Begin or continue the child, and return the names of its tools.

        A child that continues has no tools that it did not begin with, and none that its parent has lost since.

        Args:
            tools: the tools that it may have now.
        """
        found = await self.store.get(self._tools)
        if found is None:
            await self.store.put(self._tools, {"names": [*tools]}, durable=False)
            return tools
        known = frozenset(found.value["names"])
        return [name for name in tools if name in known]

    @property
    def _tools(self) -> str:
        return f"tools/{self.id}"


@frozen
class ChildSessions:
    """The sessions of the children of one agent's session.

    Args:
        store: the store of that session.
        session: its id.
        ledger: the folder of the ledger.
        approvals: those of the host.
        sync: returns when everything recorded so far is on disk.
    """

    store: Store = field(repr=False)
    session: str
    ledger: Path
    approvals: Approvals = field(repr=False)
    sync: Callable[[], Awaitable[None]] = field(repr=False)

    async def find(self, run: str, step: str, *, attempt: Attempt, effect: str, spawner: Sequence[str]) -> ChildSession:
        """Return where a child of a call keeps its session.

        Args:
            run, step: the run and the step of the call.
            attempt: the attempt to run the call.
            effect: the key of the child's effect, which depends on the call, the task and its seed.
            spawner: the principal, the plugin and the tool on whose behalf the child works.

        Raises:
            EffectUnknown: if the child had begun to change something, but its session is lost.
        """
        identity = "\0".join([attempt.seed, effect, *spawner])
        name = hashlib.sha256(identity.encode()).hexdigest()[:16]
        call = f"{self.session}:{run}:{step}"
        child = ChildSession(name, StorePart(self._whole, self._beginning(run, step)), call)
        if attempt.stops and not await child.was_begun():
            records = await query(self.ledger, session=name, limit=_MAX_RECORDS)
            lost = next((one for one in records if one.level is None or one.level >= Level.CONTROLLED), None)
            if lost is not None:
                raise EffectUnknown(CHILD_OP, effect, lost.effect)
        return child

    async def forget(self, run: str, step: str) -> None:
        """Delete the sessions of the children of a call that will not run again."""
        beginning = self._beginning(run, step)
        with anyio.CancelScope(shield=True):
            if keys := await self.store.keys(beginning):
                # The rest of a key has the ids of the child's session, and of those of its own children.
                ended = {part for key in keys for part in key.removeprefix(beginning).split("/")}
                await self.approvals.withdraw(sessions=ended)
                await self.sync()  # the record of the call's outcome must not be lost before them
                async with self.store.transaction(durable=False) as transaction:
                    await delete_within(transaction, beginning)

    def _whole(self) -> Store:
        return self.store

    def _beginning(self, run: str, step: str) -> str:
        return f"session/{self.session}/children/{run}.{step}/"
