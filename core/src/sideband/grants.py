"""The grants that users gave and that are remembered: those of skills and plugins, and lasting answers to questions.

What the configuration grants (`[grants]`) is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from .approvals import Approval, StoredApproval
from .calls._grants import RememberedGrants
from .errors import SidebandError
from .exit_codes import ExitCode
from .ops import Grant

if TYPE_CHECKING:
    from .host import Host

__all__ = ["GivenGrant", "GrantUnknown", "given_grants", "revoke_grant"]

_PLUGIN = "plugin:"
_LENGTH = 16
_LEAST_CHARACTERS = 4


class GrantUnknown(SidebandError, LookupError):
    """No grant with this id is remembered, or it does not have the capability that is to be revoked."""

    code = "grant.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, grant: str, capability: str = "") -> None:
        what = f"the grant `{grant[:80]}` does not have the capability `{capability[:200]}`" if capability else ""
        super().__init__(
            what or f"no grant `{grant[:80]}` is remembered", hint="run `sideband grants list` to list all"
        )


@frozen(kw_only=True)
class GivenGrant:
    """A grant that is remembered.

    Attributes:
        id: its id: that of the request for approval, the beginning of the digest of the skill, or ``plugin:NAME:…``.
        kind: what it is for: all tools of one version of a ``skill``, the rights of a ``plugin`` of its own, later
            calls of a ``tool``, or later ``effect``s of one op.
        subject: the name of the skill, the plugin, the tool or the op.
        requester: the tool, the skill or the plugin whose effects it allows; empty if anything else.
        scope: ``always``, or ``session``.
        session: the session for which it holds; ``None`` if it always does.
        capabilities: the capabilities, sorted.
        given: when it was given, in seconds since 1970; ``None`` if unknown.
        by: who gave it; empty if unknown.
    """

    id: str
    kind: Literal["skill", "plugin", "tool", "effect"]
    subject: str
    requester: str = ""
    scope: Literal["session", "always"] = "always"
    session: str | None = None
    capabilities: tuple[str, ...]
    given: float | None = None
    by: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the grant as data."""
        return {
            "id": self.id,
            "kind": self.kind,
            "subject": self.subject,
            "requester": self.requester,
            "scope": self.scope,
            "session": self.session,
            "capabilities": list(self.capabilities),
            "given": self.given,
            "by": self.by,
        }


async def given_grants(host: Host) -> Sequence[GivenGrant]:
    """Return all grants that are remembered, oldest first.

    Example:
        >>> async def show(host):
        ...     for one in await given_grants(host):
        ...         print(one.id, one.subject, *one.capabilities)
    """
    stored = [one for one in await host.approvals.list() if one.state == "granted"]
    answered = [_of_answer(one) for one in stored if not _is_in_file(one)]
    given_by = {str(one.request.effect.get("holder")): one for one in stored if _is_in_file(one)}
    entries = RememberedGrants(host.home).entries()
    in_file = [_of_entry(name, entry, given_by.get(name)) for name, entry in entries.items() if entry["capabilities"]]
    return sorted([*in_file, *answered], key=lambda one: (one.given or 0, one.id))


async def revoke_grant(host: Host, grant: str, capabilities: Iterable[str] = (), *, by: str = "user") -> GivenGrant:
    """Revoke a grant, and no other.

    Args:
        host: an open host.
        grant: its id, or a beginning of at least four characters that no other has.
        capabilities: those of its capabilities to revoke; all if empty. Only the grant of a skill or a plugin can be
            revoked in part.
        by: who revokes it, for the record.

    Returns:
        What was revoked.

    Raises:
        GrantUnknown: if it is not remembered, or does not have one of these capabilities.
    """
    known = await given_grants(host)
    begins = [one for one in known if len(grant) >= _LEAST_CHARACTERS and one.id.startswith(grant)]
    exact = [one for one in known if one.id == grant] or begins
    if len(exact) != 1:
        raise GrantUnknown(grant)
    one = exact[0]
    revoked = tuple(capabilities) or one.capabilities
    if missing := [text for text in revoked if text not in one.capabilities]:
        raise GrantUnknown(one.id, missing[0])
    if one.kind in {"tool", "effect"} or one.scope == "session":
        if set(revoked) != set(one.capabilities):
            raise GrantUnknown(one.id, " ".join(revoked))
        await host.approvals.answer(one.id, Approval("deny", reason="revoked", by=by))
        return one
    entries = RememberedGrants(host.home).entries()
    holder = next(name for name in entries if _id_of(name) == one.id)
    for stored in await host.approvals.list():
        is_its = stored.state == "granted" and _is_in_file(stored) and stored.request.effect.get("holder") == holder
        if is_its and Grant.parse(revoked).covers(Grant.parse(stored.request.grants["always"])):
            await host.approvals.answer(stored.request.id, Approval("deny", reason="revoked", by=by))
    await host.approvals.revoke(one.kind, holder, one.subject, revoked, by=by)
    return GivenGrant(**{**one.as_dict(), "capabilities": revoked})


def _is_in_file(stored: StoredApproval) -> bool:
    """Return whether the grant of an answer is in ``grants.toml``."""
    return stored.request.kind == "grant" and stored.answer is not None and stored.answer.scope == "always"


def _of_answer(stored: StoredApproval) -> GivenGrant:
    request, answer = stored.request, stored.answer
    assert answer is not None and answer.scope != "once"  # noqa: S101, PT018  it has given a grant
    kind, subject = request.kind, request.subject
    if request.kind == "grant":
        kind, _, subject = request.subject.partition(":")  # type: ignore[assignment]
    origin = request.origin
    requester = ".".join(filter(None, (origin.skill, origin.tool))) or origin.plugin or ""
    return GivenGrant(
        id=request.id,
        kind=kind,  # type: ignore[arg-type]
        subject=subject,
        requester=requester if request.kind == "effect" else "",
        scope=answer.scope,
        session=origin.session if answer.scope == "session" else None,
        capabilities=tuple(sorted(request.grants[answer.scope])),
        given=stored.answered,
        by=answer.by,
    )


def _of_entry(name: str, entry: Mapping[str, Any], stored: StoredApproval | None) -> GivenGrant:
    is_plugin = name.startswith(_PLUGIN)
    return GivenGrant(
        id=_id_of(name),
        kind="plugin" if is_plugin else "skill",
        subject=str(entry.get("plugin" if is_plugin else "skill", "")),
        capabilities=tuple(sorted(entry["capabilities"])),
        given=_seconds(entry.get("granted")),
        by=stored.answer.by if stored is not None and stored.answer is not None else "",
    )


def _id_of(name: str) -> str:
    return name if name.startswith(_PLUGIN) else name[:_LENGTH]


def _seconds(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
