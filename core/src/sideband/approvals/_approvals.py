"""The approvals of a host: ask each question once, store requests and answers, and use each answer as often as it says.

A request is the document ``approval/ID``. Its answer is written into it before it is used. One with the scope ``once``
is marked as used, with the version of the document that was read, before the effect begins: so it admits one effect,
whichever host uses it. The grant that another scope creates is a document ``approval-grant/…``, or for ``always`` of a
request of the kind ``grant`` an entry of ``grants.toml``.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import anyio
from attrs import define, evolve, field

from ..errors import StoreConflict, safe_text
from ..ops import Level, LimitExceeded, Origin
from ..store import Store
from ._canonical import canonical
from ._coverage import covers, grant_key, grants_of, is_for, is_remembered, is_same_call
from ._errors import ApprovalAnswered, ApprovalRefused, ApprovalUnknown
from ._requests import Approval, ApprovalKind, ApprovalRequest, ApprovalScope, Approver, StoredApproval
from ._waits import Waits

_PREFIX = "approval/"
_MOST_KEPT = 1_000
_MAX_RUNS = 10_000
_MAX_CAPABILITY = 2_000  # a longer one cannot be shown exactly
_MOST_REQUESTS = 100
_KEPT_SECONDS = 7 * 86_400.0
_KEPT_FOR_RUNS = 365 * 86_400.0
_Topic = tuple[str, str | None, int]
"""What a question is about, on whose behalf it is asked, and the approver, who never answers for another one."""
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@define(eq=False)
class _Question:
    """A question that the approver has not answered yet.

    Attributes:
        request: what it is about.
        asking: cancelled if another answer gives a grant that covers it.
        ended: set once that grant is stored.
        answered: set once the approver has returned.
        answer: the answer; stays ``None`` if the asking call, or ``asking``, was cancelled.
    """

    request: ApprovalRequest
    asking: anyio.CancelScope = field(factory=anyio.CancelScope)
    ended: anyio.Event = field(factory=anyio.Event)
    answered: anyio.Event = field(factory=anyio.Event)
    answer: StoredApproval | None = None


@define(eq=False, kw_only=True, repr=False)
class Approvals:
    """The approvals of a host: ``host.approvals``.

    Attributes:
        waits: how long calls have waited for answers.

    Example:
        >>> async def approve_all(host):
        ...     for one in await host.approvals.list():
        ...         if one.state == "open":
        ...             await host.approvals.answer(one.request.id, Approval("allow", by="me"))
    """

    _store: Store
    _key: Callable[[], bytes]
    _policy: Callable[[], Any]
    _versions: Callable[[Collection[str | None]], Sequence[str]]
    _holders: Callable[[str | None], Sequence[str]]
    _redact: Callable[[Any], Any]
    _remember: Callable[[ApprovalRequest], None]
    _forget: Callable[[ApprovalRequest], None]
    _record: Callable[[StoredApproval], Awaitable[None]]
    _asked: Callable[[ApprovalRequest, bool], Awaitable[None]]
    _ended: Callable[[ApprovalRequest, Approval | None], Awaitable[None]]
    waits: Waits = field(factory=Waits, init=False)
    _questions: dict[_Topic, _Question] = field(factory=dict, init=False)
    _refused: dict[tuple[str, str], StoredApproval] = field(factory=dict, init=False)
    _latest: dict[_Topic, tuple[int, StoredApproval]] = field(factory=dict, init=False)
    _answered: int = field(default=0, init=False)
    _requested: Counter[str] = field(factory=Counter, init=False)
    _continued: dict[str, set[str]] = field(factory=dict, init=False)
    _is_tidy: bool = field(default=False, init=False)

    async def list(self) -> Sequence[StoredApproval]:
        """Return all stored requests with their answers, oldest first.

        Those that were used are kept for a week, and answers for which the run of an agent may wait for a year.
        """
        found = [await self._read(key) for key in await self._store.keys(_PREFIX)]
        return sorted((one[0] for one in found if one is not None), key=lambda one: one.request.asked)

    async def get(self, request: str) -> StoredApproval:
        """Return a stored request and its answer.

        Raises:
            ApprovalUnknown: if it is not stored.
        """
        return (await self._known(request))[0]

    async def answer(self, request: str, approval: Approval) -> StoredApproval:
        """Answer a stored request. Until the answer is used, another one can replace it.

        A ``deny`` after an answer that created a grant revokes the grant.

        Args:
            request: the id of the request.
            approval: the answer.

        Returns:
            The request and its answer.

        Raises:
            ApprovalUnknown: if it is not stored.
            ApprovalAnswered: if its answer has been used.
            ApprovalRefused: if it does not offer the scope.
            StoreConflict: if it was answered or used at the same moment.
            TypeError: if ``approval`` is not an ``Approval``.
        """
        if not isinstance(approval, Approval):
            raise TypeError(f'expected an Approval, such as `Approval("allow")`, got {approval!r}')
        answered = await self._answer(request, approval)
        if approval.allowed and approval.scope != "once":
            (stored := anyio.Event()).set()
            self._end_questions(answered.request, approval.scope, stored)
        await self._record(answered)
        await self._ended(answered.request, approval)
        return answered

    async def revoke(self, kind: str, holder: str, name: str, capabilities: Sequence[str], *, by: str) -> None:
        """Remove capabilities of a skill or a plugin from ``grants.toml``, and record it.

        Args:
            kind: ``skill`` or ``plugin``.
            holder: the digest of the skill, or ``plugin:NAME:DISTRIBUTION``.
            name: the name of the skill or the plugin.
            capabilities: what to remove.
            by: who revokes it, for the record.
        """
        effect: Mapping[str, Any] = {"holder": holder, "name": name, "capabilities": [*capabilities]}
        asked = self.request("grant", f"{kind}:{name}", "Keep these capabilities?", effect, origin=Origin())
        request = evolve(asked, grants={"always": tuple(capabilities)})
        self._forget(request)
        answer = Approval("deny", reason="revoked", by=self._redact(by))
        await self._record(StoredApproval(request=request, answer=answer, answered=time.time()))

    async def is_granted(self, request: ApprovalRequest) -> bool:
        """Return whether a grant that was given before, and not revoked, covers a request. The user is not asked."""
        return await self._granted(request) is not None

    async def resume(self, run: str) -> None:
        """Prepare to continue a run: what it waited for needs its approval, even if no guard asks about it again."""
        stored = [one for one in await self.list() if one.request.origin.run == run and one.used is None]
        if stored:
            self._continued[run] = {one.request.id for one in stored}

    def is_continued(self, run: str | None) -> bool:
        """Return whether a run that continues waited for approvals that have not been used yet."""
        return run in self._continued

    def is_waited_for(self, request: ApprovalRequest) -> bool:
        """Return whether a run that continues waited for the answer to this request."""
        return request.id in self._continued.get(request.origin.run or "", ())

    async def withdraw(self, *, run: str = "", step: str | None = None, sessions: Collection[str] = ()) -> None:
        """Delete the requests of a run that will not continue, and of sessions that end, unless they were used.

        Args:
            run: the run.
            step: only the requests of this step, such as those of one tool call; by default of all steps.
            sessions: the sessions.
        """
        if step is None:
            self._continued.pop(run, None)
        for key in await self._store.keys(_PREFIX):
            found = await self._read(key)
            if found is None or found[0].used is not None:
                continue
            origin = found[0].request.origin
            if origin.session in sessions or (origin.run == run and step in (None, origin.step)):
                with suppress(StoreConflict):
                    await self._store.delete(key, version=found[1])

    def request(
        self,
        kind: ApprovalKind,
        subject: str,
        question: str,
        effect: Mapping[str, Any],
        *,
        origin: Origin,
        exact: Any = None,
        code: str = "",
        plugins: Iterable[str | None] = (),
        grants: Sequence[str] = (),
        level: Level | None = None,
        risk: str = "",
        preview: str | None = None,
    ) -> ApprovalRequest:
        """Return a request.

        Args:
            kind, subject, question, effect, origin, level, risk, preview: see ``ApprovalRequest``.
            exact: what an approval depends on instead of the effect: all of the parameters, and the grant.
            code: the version of the code that requests it, if it is a skill's.
            plugins: the plugins whose versions it depends on, besides guards and the plugin of the origin.
            grants: the capabilities of the grant that another scope than ``once`` creates; none if it is not offered.
        """
        actor = [origin.principal, origin.skill, origin.tool, origin.plugin, code]
        versions = [*self._versions({*plugins, origin.plugin})]
        digest = self._digest(
            kind, subject, effect if exact is None else exact, actor, origin.session, versions, self._policy()
        )
        shown = [text for text in grants if len(text) <= _MAX_CAPABILITY and self._redact(text) == text]
        scopes: tuple[ApprovalScope, ...] = ("session", "always") if origin.session else ("always",)
        return ApprovalRequest(
            id=digest[:16],
            kind=kind,
            subject=subject,
            question=self._redact(question),
            effect=self._redact(effect),
            level=level,
            risk=self._redact(risk),
            preview=self._redact(preview),
            origin=origin,
            digest=digest,
            # The grant of a skill is for all of its tools.
            grantee=self._digest(kind, subject, [code] if kind == "grant" else [*actor, *self._holders(origin.plugin)]),
            grants={scope: tuple(shown) for scope in scopes} if shown and len(shown) == len(grants) else {},
        )

    def _digest(self, *parts: Any) -> str:
        return hmac.new(self._key(), canonical(parts).encode(), hashlib.sha256).hexdigest()

    async def decide(
        self, request: ApprovalRequest, approver: Approver | None, *, about: str = ""
    ) -> StoredApproval | None:
        """Return the answer to a request: that of a grant, one that was stored, or that of the approver.

        Args:
            request: the request.
            approver: answers it; ``None`` without an approver.
            about: what the question is about, if requests with other digests ask the same. Parallel calls with the
                same principal and approver share its answer, unless that is an approval with the scope ``once``, which
                admits one of them.

        Returns:
            The answer, which is marked as used if it allows the request; ``None`` without an approver. The
            request is then stored.

        Raises:
            LimitExceeded: if there is no approver, and too many requests of the run are stored.
        """
        about = about or request.digest
        topic = about, request.origin.principal, id(approver)
        began = self._answered
        while True:
            answer = await self._find(request, about)
            if answer is not None:
                return answer
            if approver is None:
                if await self._open(request, limited=True):
                    await self._asked(request, False)
                return None
            if (latest := self._latest.get(topic)) is not None and latest[0] > began and is_for(latest[1], request):
                answer = latest[1]  # given while this call looked for one
            else:
                with self.waits.of(request.origin):
                    answer = await self._shared(request, approver, topic)
            if answer is None or answer.answer is None:
                continue
            if not answer.allowed:
                return self._keep_refusal(answer, request, about)
            if is_for(answer, request):
                return answer

    async def _shared(self, request: ApprovalRequest, approver: Approver, topic: _Topic) -> StoredApproval | None:
        """Ask, or wait for the answer to the same question of another call."""
        if (question := self._questions.get(topic)) is None:
            return await self._ask(request, approver, topic)
        await question.answered.wait()
        return question.answer

    async def _ask(self, request: ApprovalRequest, approver: Approver, topic: _Topic) -> StoredApproval | None:
        question = self._questions[topic] = _Question(request)
        approval: object = None
        is_open = False
        try:
            await self._open(request)
            is_open = True
            await self._asked(request, True)
            try:
                with question.asking:
                    approval = await approver(request)
            except Exception as error:  # noqa: BLE001  a program's approver may raise anything
                return self._no_answer(request, f"the approver failed: {type(error).__name__}: {safe_text(error)}")
            if question.asking.cancelled_caught:
                await question.ended.wait()
                is_open = await self._drop(_PREFIX + request.id)
                return None
            if not isinstance(approval, Approval):
                problem = f"the approver returned a {type(approval).__name__}, but must return an Approval"
                return self._no_answer(request, problem)
            if approval.allowed and approval.scope not in ("once", *request.grants):
                problem = f"the approver answered with the scope `{approval.scope}`, which the request does not offer"
                return self._no_answer(request, problem)
            if approval.allowed and approval.scope != "once":
                self._end_questions(request, approval.scope, question.answered)  # before the next one is shown
            try:
                question.answer = await self._answer(request.id, approval)
            except (StoreConflict, ApprovalAnswered, ApprovalUnknown):
                is_open = False  # another answer was stored or used meanwhile: that one counts
                return None
            if request.kind in {"grant", "replay"} or approval.scope != "once":
                await self._record(question.answer)
            if not question.answer.allowed or approval.scope != "once":
                self._answered += 1
                _keep(self._latest, topic, (self._answered, question.answer))
            return question.answer
        finally:
            del self._questions[topic]
            question.answered.set()
            if is_open:
                answer = None if question.answer is None else question.answer.answer
                with anyio.CancelScope(shield=True):
                    await self._ended(request, answer)

    def _no_answer(self, request: ApprovalRequest, problem: str) -> StoredApproval:
        """Return a refusal that holds for this effect only: the request stays open."""
        return StoredApproval(request=request, answer=Approval("deny", reason=str(self._redact(problem))))

    def _keep_refusal(self, answer: StoredApproval, request: ApprovalRequest, about: str) -> StoredApproval:
        if answer.answered is not None and request.origin.run is not None:
            _keep(self._refused, (about, request.origin.run), answer)
        return answer

    async def _find(self, request: ApprovalRequest, about: str) -> StoredApproval | None:
        """Return the answer that is known already, and mark it as used if it allows the request."""
        if (refused := self._refused.get((about, request.origin.run or ""))) is not None:
            return refused
        return await self._granted(request) or await self._stored_answer(request)

    async def _granted(self, request: ApprovalRequest) -> StoredApproval | None:
        """Return the answer that created a grant which covers the request."""
        for scope, wanted in request.grants.items():
            for key in await self._store.keys(grants_of(request, scope)):
                granted = await self._store.get(key)
                if granted is None or not covers(granted.value["capabilities"], wanted):
                    continue
                answer = Approval("allow", scope, by=str(granted.value["by"]))
                given = float(granted.value["answered"])
                return StoredApproval(request=request, answer=answer, answered=given, used=given)
        return None

    async def _stored_answer(self, request: ApprovalRequest) -> StoredApproval | None:
        """Return the stored answer to this very request, if it still holds."""
        found = await self._read(_PREFIX + request.id)
        if found is None or found[0].request.digest != request.digest:
            return None
        stored, version = found
        if stored.state == "denied":
            return stored if stored.request.origin.run == request.origin.run is not None else None
        if stored.state == "used" and is_same_call(stored, request):
            return stored
        if stored.state != "approved":
            return None
        used = evolve(stored, used=time.time())
        try:
            await self._store.put(_PREFIX + request.id, used.as_dict(), version=version)
        except StoreConflict:
            return None  # another effect used it, or another answer replaced it
        run = request.origin.run or ""
        if run in self._continued:
            self._continued[run] -= {request.id}
            if not self._continued[run]:
                del self._continued[run]
        return used

    async def _open(self, request: ApprovalRequest, *, limited: bool = False) -> bool:
        """Store a request, unless it waits for an answer already. Return whether it was stored now."""
        await self._tidy()
        key, run = _PREFIX + request.id, request.origin.run
        found = await self._read(key)
        known = None if found is None or found[0].state != "open" else found[0].request
        if known is not None and (known.digest, known.origin.run) == (request.digest, run):
            return False
        if limited and run is not None:
            if self._requested[run] >= _MOST_REQUESTS:
                raise LimitExceeded("approvals", _MOST_REQUESTS, op=request.subject)
            if len(self._requested) > _MAX_RUNS:
                self._requested.clear()
            self._requested[run] += 1
        document = await self._store.get(key)
        with suppress(StoreConflict):  # an equal request was stored at the same moment
            version = 0 if document is None else document.version
            await self._store.put(key, StoredApproval(request=request).as_dict(), version=version)
            return True
        return False

    async def _answer(self, identifier: str, approval: Approval) -> StoredApproval:
        approval = evolve(approval, reason=self._redact(approval.reason), by=self._redact(approval.by))
        stored, version = await self._known(identifier)
        request, scope = stored.request, approval.scope
        revoked = stored.answer if stored.state == "granted" and not approval.allowed else None
        if stored.used is not None and revoked is None:
            raise ApprovalAnswered(identifier)
        creates = approval.allowed and scope != "once"
        if creates and scope not in request.grants:
            raise ApprovalRefused(request, scope)
        if revoked is not None and is_remembered(request, revoked.scope):
            self._forget(request)  # before the answer: if the host ends between, it can be revoked again
        now = time.time()
        # From now on the grant counts, which can be revoked, and not the answer.
        answered = evolve(stored, answer=approval, answered=now, used=now if creates else None)
        async with self._store.transaction() as transaction:
            await transaction.put(_PREFIX + identifier, answered.as_dict(), version=version)
            if revoked is not None:
                await transaction.delete(grant_key(request, revoked.scope))
            if creates and not is_remembered(request, scope):
                grant = {"capabilities": [*request.grants[scope]], "by": approval.by, "answered": now}
                await transaction.put(grant_key(request, scope), grant)
        if creates and is_remembered(request, scope):
            self._remember(request)
        return answered

    def _end_questions(self, request: ApprovalRequest, scope: ApprovalScope, stored: anyio.Event) -> None:
        """Cancel the approvers that are still asked about what a grant covers. Their calls wait until it is stored."""
        for question in () if is_remembered(request, scope) else self._questions.values():
            other = question.request
            wanted = other.grants.get(scope, ()) if grants_of(other, scope) == grants_of(request, scope) else ()
            if wanted and other is not request and covers(request.grants[scope], wanted):
                question.ended = stored
                question.asking.cancel()

    async def _drop(self, key: str) -> bool:
        """Delete a request that is still open, and return whether it was."""
        found = await self._read(key)
        if found is not None and found[0].state == "open":
            with suppress(StoreConflict):
                return await self._store.delete(key, version=found[1])
        return False

    async def _known(self, identifier: str) -> tuple[StoredApproval, int]:
        found = await self._read(_PREFIX + identifier)
        if found is None:
            raise ApprovalUnknown(identifier)
        return found

    async def _read(self, key: str) -> tuple[StoredApproval, int] | None:
        """Return a stored request and the version of its document; ``None`` if it is missing or of another version."""
        document = await self._store.get(key)
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            return None if document is None else (StoredApproval.from_dict(document.value), document.version)
        return None

    async def _tidy(self) -> None:
        """Delete the documents that are no longer needed, once for each host."""
        if self._is_tidy:
            return
        self._is_tidy = True
        for key in await self._store.keys(_PREFIX):
            found = await self._read(key)
            if found is None:
                continue
            stored, version = found
            last = stored.used or stored.answered or stored.request.asked
            # An agent's run may wait for its request, and its answer, until it is cancelled. A grant can be revoked.
            waits = stored.used is None and stored.request.origin.session is not None
            kept = (waits and stored.state == "open") or stored.state == "granted"
            if not kept and time.time() - last > (_KEPT_FOR_RUNS if waits else _KEPT_SECONDS):
                with suppress(StoreConflict):
                    await self._store.delete(key, version=version)


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep a value among the newest."""
    kept[key] = value
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]
