"""The context of op handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from attrs import field, frozen

if TYPE_CHECKING:  # used in annotations only
    from ..blobs import BlobStore
    from ..models._pieces import JsonPieces
    from ..ops._scope import Scope
    from ..sandboxing import ProgramProcess, ProgramRequest
    from ..store import Store


ApprovalMode = Literal["manual", "assist", "semi", "full", "plan"]
"""When a guard asks a person about changes, from each time to never; ``plan``: once about a plan of all of them."""

APPROVAL_MODES: tuple[ApprovalMode, ...] = get_args(ApprovalMode)
"""All modes, in this order."""


@frozen
class Origin:
    """The caller of an effect, as recorded by the host. It contains no claims of workers.

    Attributes:
        principal: the principal on whose behalf the effect happens.
        session, run: the ids of the agent's session and run; without an agent, ``run`` is the id of the call.
        step: the model step of the run, such as ``2``, or a tool call in it, such as ``2.0``.
        skill, tool: the tool that caused the effect, and its skill.
        plugin: the plugin that caused the effect.
        parent: for a child agent, the parent's tool call that started it: ``session:run:step``.
        channel: the channel of the agent's session, such as ``cli``. It is not recorded.
        approval_mode: the approval mode of the agent's session, if a guard has modes.
    """

    principal: str = "user"
    session: str | None = None
    run: str | None = None
    step: str | None = None
    skill: str | None = None
    tool: str | None = None
    plugin: str | None = None
    parent: str | None = None
    channel: str | None = None
    approval_mode: ApprovalMode | None = None


@frozen
class Credential:
    """A secret that was resolved for one audience. Its value is registered with the redactor before handlers see it.

    Args:
        handle: the name of the stored secret.
        value: the secret value.
        headers: the headers to send, if the secret was stored with a header format; if empty, the op decides
            (``Authorization: Bearer`` for http).
        origins: the origins to which it may be sent, besides the audience.
    """

    handle: str
    value: str = field(repr=False)
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    origins: tuple[str, ...] = ()


class CredentialResolver(Protocol):
    """Resolves handles to credentials. The op family named in the policy provides it (by default `secrets`)."""

    async def resolve(self, handle: str, audience: str, ctx: OpContext) -> Credential:
        """Return the credential for this audience (an origin such as ``https://api.github.com``).

        Raises:
            OpFailed: if the credential is missing (``secrets.missing``) or bound to other origins
                (``secrets.audience``).
        """


class RedactedText(Protocol):
    """A text that arrives in pieces. Secrets in it are redacted, also if they are split over pieces."""

    def feed(self, piece: str) -> str:
        """Add a piece, and return what can be shown now. The end is held back while a secret may begin there."""

    def end(self) -> str:
        """Return the rest. No more pieces may follow."""


class EffectContext(Protocol):
    """Base of all contexts: causes effects with the rights of the plugin or call that it belongs to."""

    @property
    def config(self) -> Any:
        """The plugin's validated ``Config``, or ``None`` if it does not define one."""

    @property
    def state(self) -> Any:
        """The value that the plugin's ``lifespan`` yielded, or ``None``."""

    @property
    def principal(self) -> str:
        """The principal on whose behalf effects happen."""

    @property
    def home(self) -> Path:
        """The host's state folder (``SIDEBAND_HOME``)."""

    @property
    def store(self) -> Store:
        """The plugin's own part of the host's store, with documents, streams and transactions.

        Plugins with another name have their own. It is available from the beginning of the ``lifespan`` until the host
        closes, but not after the ``yield`` of the ``lifespan``. What a plugin writes is not redacted: check data that
        may contain a secret with ``check_egress(None, …)`` first.
        """

    def now(self) -> datetime:
        """Return the time, with the local time zone. A host that replays a cassette returns that of the recording.

        Use it for what a model or an op gets to see, and ``time.monotonic()`` to measure a duration.
        """

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
    ) -> Any:
        """Run an op through the broker. If ``capabilities`` are given, the context's rights are narrowed to them."""

    async def credential(self, handle: str, audience: str) -> Credential:
        """Resolve a handle for one audience, an origin such as ``https://api.github.com``.

        Raises:
            OpDenied: if the context's rights don't include ``secrets:name=HANDLE``.
            OpFailed: if the credential is missing or bound to other origins.
        """

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """Register a value with the redactor for the lifetime of the host.

        Args:
            value: the secret.
            name: the name that replaces it.
            origins: the origins to which it may be sent (``check_egress``); if empty, it may not be sent anywhere.
        """

    def check_egress(self, audience: str | None, parts: Mapping[str, str | bytes | JsonPieces]) -> None:
        """Check that data contains no known secret that must not be sent there. Call it before sending or storing.

        Args:
            audience: the receiving origin, such as ``https://api.github.com``; ``None`` for places that must never
                contain secrets, such as URLs, files and command lines.
            parts: the data, by a description for messages: ``{"header `x-token`": …, "body": …}``. Pieces of JSON are
                checked once for the same secrets.

        Raises:
            EgressRefused: if a part contains a secret, in any encoding that the redactor knows, that is not bound to
                ``audience``.
        """


class OpContext(EffectContext, Protocol):
    """The context of one dispatch. Except for ``state`` and ``config``, it is valid until the handler returns.

    After the deadline or a cancellation, only notes can be made with it: dispatches are refused and recorded.

    Ops that it dispatches are child effects. Its rights are the call's grant.
    """

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        rights: Literal["caller", "own"] = "caller",
    ) -> Any:
        """Run an op through the broker, as a child effect.

        Args:
            op: the name of the op.
            params: its parameters.
            capabilities: narrows the rights to these capabilities.
            key: an idempotency key: an effect with this key happens at most once.
            rights: ``caller`` for those of the call, or ``own`` for those that the user or a policy gave to the plugin
                among the ones that its family declares in ``uses``. The user may be asked for them.
        """

    @property
    def op(self) -> str:
        """The name of the op."""

    @property
    def effect(self) -> str:
        """The id of the effect in the ledger."""

    @property
    def call(self) -> str:
        """The id of the call; all dispatches of one call share it."""

    @property
    def domain(self) -> str:
        """The trust domain (skill, grant and principal) that may share objects the call creates, such as handles."""

    @property
    def origin(self) -> Origin:
        """The caller."""

    @property
    def deadline(self) -> float:
        """The deadline of the dispatch, on the clock of ``anyio.current_time()``."""

    @property
    def blobs(self) -> BlobStore:
        """The host's store of bytes that are too large for a message. Check ``BlobScope`` before serving a skill."""

    def require(self, *scopes: Scope) -> None:
        """Check scopes that become known only while the handler runs, such as the target of a redirect.

        Raises:
            OpDenied: if the call's grant does not allow one of them. The hint has the options that grant all of them.
        """

    def allows(self, scope: Scope) -> bool:
        """Return whether the call's grant allows a scope, as at the start of the op: ``known_later`` may be omitted."""

    async def progress(
        self,
        *,
        current: float | None = None,
        total: float | None = None,
        message: str | None = None,
        unit: str | None = None,
    ) -> None:
        """Report progress to observers of the call. Redacted and bounded; never waits for a slow observer.

        For output that arrives bit by bit, use ``emit_tool_progress`` of ``sideband.tools``.

        Args:
            current, total: the current and the final value.
            message: one line for display.
            unit: the unit of the values, such as ``bytes``.
        """

    async def emit(self, part: Mapping[str, Any]) -> None:
        """Stream a part of the result to the caller, as plain data, which is redacted.

        Does nothing if the caller did not request streaming. Waits until the part was received. For parts that differ
        only in ``text`` or ``arguments``, these strings form one text, in which secrets are found even if they are
        split over several parts; so some characters may be held back until the next part or the end.
        """

    async def note(self, data: Mapping[str, Any]) -> None:
        """Add data for ``reconcile`` and ``undo`` to the effect's record. It is on disk when this returns.

        Call it before making a change, for instance with digests of the old and new content and a blob of the old one.

        Args:
            data: JSON data of at most 64 KiB, which is redacted. Later notes replace values under the same key.

        Raises:
            ValueError: if the data is larger or is not JSON.
            LedgerError: if it could not be recorded; the handler must then not make the change.
        """

    async def trace_parent(self) -> str | None:
        """Return the trace context of the effect for the header ``traceparent``, or ``None`` if no plugin traces it.

        Send it only to receivers for which the call's grant allows that.
        """

    async def launch(self, request: ProgramRequest) -> ProgramProcess:
        """Start a program in the isolation that the host requires for workers. The caller must close it.

        Raises:
            IsolationUnavailable: if this isolation is unavailable for programs.
            WorkerStartFailed: if the operating system refused to start it.
        """

    def check_cut(self, before: bytes, after: bytes) -> None:
        """Check that a cut does not split a known secret. Call it before returning or storing a part of larger data.

        Results are redacted, but half a secret is not recognized: a caller that reads one part after the other would
        get the whole secret.

        Args:
            before: the data before the cut. A few kilobytes are enough; longer secrets are not found.
            after: the data after the cut.

        Raises:
            EgressRefused: if a secret, in any encoding that the redactor knows, spans the cut.
        """

    def on_call_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Run ``close`` when the call has ended, whether it succeeded or not."""

    def on_session_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Run ``close`` when the session of the calling agent has ended; without one, when the call has ended.

        Use it for objects that later calls of the session may use, such as a program that runs in the background.
        """

    def redacted_text(self) -> RedactedText:
        """Return a new text that arrives in pieces, such as output that later calls read in parts.

        It may be used after the dispatch has ended. Results are redacted anyway, but not a secret that is split over
        several of them.
        """
