"""The approval mode of a session: when a person is asked about changes.

It is stored beside the session and not in it: no entry, export, import or rewind of the session can change it.
"""

from __future__ import annotations

from typing import Self, cast

from attrs import define, field
from sideband.contexts import APPROVAL_MODES, ApprovalMode
from sideband.hooks import ApprovalModeSelect, HookRegistry, ToolCall
from sideband.store import Store

from ._announcer import Announcer
from ._errors import ApprovalModeUnavailable, ApprovalModeUnknown

_GUARD = "approval"
_MOST_CAREFUL: ApprovalMode = "manual"


@define(eq=False)
class SessionApprovalMode:
    """The approval mode of one session, which its children share.

    Attributes:
        session: the id of the session.
        usual: the mode of sessions for which none was selected; ``None`` without a guard that has modes.
        selected: the mode that the user selected for this session, if any.
    """

    _store: Store = field(repr=False)
    _announcer: Announcer = field(repr=False)
    session: str
    usual: ApprovalMode | None
    selected: ApprovalMode | None = None

    @classmethod
    async def of(
        cls, store: Store, session: str, announcer: Announcer, hooks: HookRegistry, preferred: ApprovalMode | None
    ) -> Self:
        """Return the mode that was stored for a session.

        Args:
            store: the store of the session.
            session: its id.
            announcer: that of the session's own agent; it also reports changes that a child causes.
            hooks: the guards of the agent.
            preferred: the mode of sessions for which none was selected, if none is configured.
        """
        found = await store.get(_key(session))
        selected = None if found is None else found.value.get("mode")
        known = selected is None or selected in APPROVAL_MODES
        return cls(
            store,
            announcer,
            session,
            _usual_mode(hooks, preferred),
            cast("ApprovalMode | None", selected if known else _MOST_CAREFUL),
        )

    @property
    def mode(self) -> ApprovalMode | None:
        """The mode that holds now; ``None`` without a guard that has modes."""
        return None if self.usual is None else self.selected or self.usual

    async def select(self, mode: str, *, source: str = "set") -> None:
        """Use another mode from now on, also in a run that is in progress, and report a change to plugins.

        Args:
            mode: the mode.
            source: ``set`` by the user, or ``plan`` if the user approved a plan.

        Raises:
            ApprovalModeUnknown: if it does not exist.
            ApprovalModeUnavailable: if there is no guard that has modes.
        """
        if mode not in APPROVAL_MODES:
            raise ApprovalModeUnknown(mode, APPROVAL_MODES)
        if self.usual is None:
            raise ApprovalModeUnavailable(mode)
        previous = self.mode
        await self._store.put(_key(self.session), {"mode": mode})
        self.selected = mode
        if mode != previous:
            await self._announcer.emit(ApprovalModeSelect, self.session, mode, previous=previous, source=source)

    async def copy_to(self, session: str) -> None:
        """Store the selected mode for a copy of the session."""
        if self.selected is not None:
            await self._store.put(_key(session), {"mode": self.selected})


def _key(session: str) -> str:
    return f"session/{session}/approval-mode"


def _usual_mode(hooks: HookRegistry, preferred: ApprovalMode | None) -> ApprovalMode | None:
    if _GUARD not in hooks.plugins:
        return None
    context = hooks.context_of(_GUARD, ToolCall("", "", {}))
    configured: ApprovalMode | None = getattr(context and context.config, "mode", None)
    return configured or preferred or "full"
