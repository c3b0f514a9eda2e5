"""What the broker needs of a cassette: the answers of recorded effects, and a place to record others."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..ops import Origin
from ..ops._spec import Handler
from ._call import Call
from ._lookup import BoundOp
from ._redaction import Redaction

if TYPE_CHECKING:
    from ..tools import ToolSource


class TapedDispatch(Protocol):
    """A dispatch, as a tape sees it."""

    @property
    def call(self) -> Call:
        """The call that dispatches it."""

    @property
    def op(self) -> str:
        """The name of the op."""

    @property
    def effect(self) -> str:
        """Its id in the ledger."""

    @property
    def within(self) -> str | None:
        """The id of the enclosing effect, if another op made this dispatch."""

    @property
    def origin(self) -> Origin:
        """Its origin."""

    @property
    def started(self) -> float:
        """When it began, on the clock of ``time.perf_counter()``."""

    @property
    def bound(self) -> BoundOp | None:
        """The op, or ``None`` before the look-up."""

    @property
    def found(self) -> BoundOp:
        """The op, after the look-up."""

    def passed(self) -> dict[str, Any]:
        """Return the valid parameters that were passed, as JSON data, without values that are declared as secrets."""


class EffectTape(Protocol):
    """The effects of one host, recorded or replayed."""

    @property
    def name(self) -> str:
        """The name of the cassette, for the records of effects that it answers."""

    @property
    def replays(self) -> bool:
        """Whether nothing but recorded answers is used: no handler of an op runs."""

    def now(self) -> datetime:
        """Return the time of the recording, with a time zone."""

    def takes(self, dispatch: TapedDispatch) -> bool:
        """Return whether a dispatch is an effect of its own, and not part of one that is recorded as a whole.

        Raises:
            SidebandError: if the replay has stopped.
        """

    def source(self, source: ToolSource) -> ToolSource:
        """Return a source of tools that records them, or offers the recorded ones in place of ``source``."""

    def find(self, dispatch: TapedDispatch) -> Handler | None:
        """Return what answers an authorized dispatch in place of its op, or ``None`` if the op runs.

        Raises:
            SidebandError: if the replay stops with it.
        """

    async def record(self, dispatch: TapedDispatch, running: Coroutine[Any, Any, Any]) -> Any:
        """Run the effect of a dispatch, and record its answer."""

    def enter(self, call: Call, tool: str, arguments: Any) -> None:
        """Note that a call of a tool begins, to which the effects of the call belong."""

    def ending(self) -> AbstractContextManager[None]:
        """Cancel the block when the replay stops, and raise why in place of what the block raises."""

    def finish(self, raised: BaseException | None) -> None:
        """End the recording or the replay of a host that is closed.

        Args:
            raised: the exception that closes it, if any.

        Raises:
            SidebandError: if the replay has stopped or is incomplete, or the recording cannot be written.
        """


class EffectCassette(Protocol):
    """What a host is opened with to record its effects, or to answer them: see the package ``sideband-cassettes``."""

    def load(self, *, home: Path, redactor: Redaction) -> EffectTape:
        """Return the tape for one host.

        Args:
            home: the folder with the state of the host.
            redactor: the secrets that the host knows.

        Raises:
            SidebandError: if it cannot be replayed.
        """
