"""What a handler gets besides its parameters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen

if TYPE_CHECKING:  # a context carries these, and needs none of them
    from ..blobs import BlobStore
    from ..ops._scope import Scope
    from ..sandboxing import ProgramProcess, ProgramRequest


@frozen
class Origin:
    """Who caused an effect, as the host knows it. What a worker says about itself is not in here.

    Attributes:
        principal: on whose behalf.
        session, run: an agent's; without an agent, ``run`` is the id of the call.
        step: the model step of the run, ``2``, or a tool call of it, ``2.0``.
        skill, tool: the tool that wants it, and the skill that has it.
        plugin: the plugin that wants it.
        parent: the tool call that the agent itself works for, if it is a child: ``session:run:step`` of its parent.
    """

    principal: str = "user"
    session: str | None = None
    run: str | None = None
    step: str | None = None
    skill: str | None = None
    tool: str | None = None
    plugin: str | None = None
    parent: str | None = None


@frozen
class Credential:
    """A secret that was resolved for one audience. Its value is known to the redactor before a handler sees it.

    Args:
        handle: the name it is stored under.
        value: the secret itself.
        headers: the headers to send, if it was registered with a form of its own; empty means that the op decides
            (``Authorization: Bearer`` for http).
        origins: where it may be sent to, besides the audience that it was resolved for.
    """

    handle: str
    value: str = field(repr=False)
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    origins: tuple[str, ...] = ()


class CredentialResolver(Protocol):
    """Turns a handle into a credential. The op family that the policy names as its source supplies one (`secrets`)."""

    async def resolve(self, handle: str, audience: str, ctx: OpContext) -> Credential:
        """The credential, for this audience (an origin, ``https://api.github.com``).

        Raises:
            OpFailed: there is none of that name (``secrets.missing``), or it is bound to other origins
                (``secrets.audience``).
        """


class EffectContext(Protocol):
    """What every context offers: to cause effects, with the rights of what it was made for."""

    @property
    def config(self) -> Any:
        """The plugin's validated ``Config``, or ``None`` if it has none."""

    @property
    def state(self) -> Any:
        """What the plugin's ``lifespan`` yielded, or ``None``."""

    @property
    def principal(self) -> str:
        """On whose behalf."""

    @property
    def home(self) -> Path:
        """The host's folder for state (``SIDEBAND_HOME``)."""

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
    ) -> Any:
        """Run an op through the broker, with the context's rights narrowed to ``capabilities`` (``None``: not)."""

    async def credential(self, handle: str, audience: str) -> Credential:
        """Resolve a handle for one audience, an origin such as ``https://api.github.com``.

        Raises:
            OpDenied: the context's rights have no ``secrets:name=HANDLE``.
            OpFailed: there is no such credential, or it is bound to other origins.
        """

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """Make a value known to the redactor, for the rest of the host's life.

        Args:
            value: the secret.
            name: what stands in its place.
            origins: where it may be sent to (``check_egress``); none: nowhere.
        """


class OpContext(EffectContext, Protocol):
    """The context of one dispatch. Valid until the handler returns, except ``state`` and ``config``.

    What it dispatches are child effects. Its rights are the call's grant.
    """

    @property
    def op(self) -> str:
        """The op's name."""

    @property
    def effect(self) -> str:
        """The effect's id in the ledger."""

    @property
    def call(self) -> str:
        """The id of the call that it belongs to; all dispatches of one call share it."""

    @property
    def domain(self) -> str:
        """Who may share what the call leaves behind (a session, a handle): names skill, grant and principal."""

    @property
    def origin(self) -> Origin:
        """Who caused it."""

    @property
    def deadline(self) -> float:
        """When the dispatch must have ended, on ``anyio.current_time()``'s clock."""

    @property
    def blobs(self) -> BlobStore:
        """The host's store of bytes that are too large for a message. Check ``BlobScope`` before a skill gets at it."""

    def require(self, scope: Scope) -> None:
        """Check a scope that was not known before the handler ran (the target of a redirect).

        Raises:
            OpDenied: the call's grant does not allow it.
        """

    async def progress(
        self, *, current: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell whoever watches the call how far it is. Redacted, bounded, never waits for a slow reader."""

    async def emit(self, part: Mapping[str, Any]) -> None:
        """Hand a part of the result to whoever waits for it, before it is complete: plain data, redacted.

        Nothing happens if nobody asked for parts. Waits until the part was taken. The strings under ``text`` and
        ``arguments`` of parts that are equal otherwise are one text: a secret that is split over them is found too, so
        that some characters may arrive with the next part, or at the end.
        """

    async def note(self, data: Mapping[str, Any]) -> None:
        """Add to the effect's record what ``reconcile`` and ``undo`` will need. On disk when this returns.

        To be called before the world is changed: a digest of what is there and of what will be, a blob that keeps it.

        Args:
            data: JSON data of at most 64 KiB. It is redacted; what is noted later under the same name replaces it.

        Raises:
            ValueError: it is larger, or no JSON.
            LedgerError: it could not be recorded; the world must not be changed then.
        """

    async def launch(self, request: ProgramRequest) -> ProgramProcess:
        """Start a command in the isolation that the host demands for workers. Whoever launches it closes it.

        Raises:
            IsolationUnavailable: it can't be had here for commands.
            WorkerStartFailed: the system refused.
        """

    def check_egress(self, audience: str | None, parts: Mapping[str, str | bytes]) -> None:
        """Make sure that no known secret leaves for where it must not go. Ask before anything is sent or stored.

        Args:
            audience: the origin that gets it, ``https://api.github.com``; ``None`` for places where no secret belongs
                at all (a URL, a file, a command line).
            parts: what is about to go there, by what a person calls it: ``{"header `x-token`": …, "body": …}``.

        Raises:
            EgressRefused: a part holds a secret, in any form that the redactor knows, that is not bound to
                ``audience``.
        """

    def check_cut(self, before: bytes, after: bytes) -> None:
        """Make sure that no known secret is cut in two. Ask before a part of something larger is answered or kept.

        What is answered is redacted, but half a secret is not recognised: who asks for one part after the other would
        see all of it.

        Args:
            before: what ends where the cut is. Some kilobytes are enough; a secret that is longer is not found.
            after: what begins there.

        Raises:
            EgressRefused: a secret, in any form that the redactor knows, begins in one and ends in the other.
        """

    def on_call_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Run ``close`` when the call that this dispatch belongs to has ended, whichever way."""
