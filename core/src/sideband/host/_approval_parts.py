"""The approvals of a host: what they are bound to, and where grants and answers are recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_bytes
from typing import Any

from attrs import evolve

from ..approvals import Approval, ApprovalRequest, Approvals, StoredApproval
from ..broker import Redaction, Unserializable, shortened
from ..broker._lookup import ANSWER_OP
from ..calls._grants import RememberedGrants
from ..errors import StateUnwritable
from ..hooks import ApprovalEnd, ApprovalStart, HookRegistry
from ..ledger import Ledger, Outcome
from ..ops import Grant, Level
from ..plugins import PluginHost
from ..settings import LoadedSettings
from ..state import replace_file
from ..store import Store

_MAX_SHOWN = 262_144


def approvals_of(
    home: Path,
    settings: LoadedSettings,
    *,
    plugins: PluginHost,
    store: Store,
    ledger: Ledger,
    redactor: Redaction,
    hooks: HookRegistry,
) -> Approvals:
    """Return the approvals of a host. What they need is read when the first question is asked."""
    tables = settings.settings

    def versions(names: Collection[str | None]) -> Sequence[str]:
        """Return the versions of all guards and of these plugins."""
        relevant = (one for one in plugins.records if one.kind == "guard" or one.name in names)
        return sorted(f"{one.label} {one.distribution} {one.version}" for one in relevant)

    def holders(name: str | None) -> Sequence[str]:
        """Return the plugins of this name, each with its distribution."""
        return sorted({one.holder for one in plugins.records if one.name == name})

    def shown(value: Any) -> Any:
        """Return data as it is shown and stored: redacted, and shortened if it is very long."""
        try:
            plain = redactor.data(value)
        except Unserializable:
            return dict.fromkeys(value, "…") if isinstance(value, dict) else "…"
        text = json.dumps(plain, default=lambda data: f"({len(data):,} bytes)")
        return json.loads(text) if len(text) <= _MAX_SHOWN else shortened(plain)

    def remember(request: ApprovalRequest) -> None:
        grant = Grant.parse(request.grants["always"])
        RememberedGrants(home).remember(str(request.effect["holder"]), str(request.effect["name"]), grant)

    def forget(request: ApprovalRequest) -> None:
        RememberedGrants(home).forget(str(request.effect["holder"]), Grant.parse(request.grants["always"]))

    async def record(answered: StoredApproval) -> None:
        """Record an answer that is not a part of the record of the effect that it is about."""
        request = answered.request
        await ledger.outcome(
            Outcome(
                effect=ledger.new_effect_id(),
                op=ANSWER_OP,
                status="done" if answered.allowed else "denied",
                params=shortened(shown({"kind": request.kind, "subject": request.subject, "effect": request.effect})),
                origin=request.origin,
                level=Level.SAFE,
                decisions=(answered.as_decision(),),
            )
        )

    async def asked(request: ApprovalRequest, waits: bool) -> None:
        await hooks.observe(
            ApprovalStart(request.id, request.kind, request.subject, request.origin, request.level, waits)
        )

    async def ended(request: ApprovalRequest, approval: Approval | None) -> None:
        end = ApprovalEnd(request.id, request.kind, request.subject, request.origin, request.level)
        if approval is not None:
            end = evolve(end, verdict=approval.verdict, scope=approval.scope)
        await hooks.observe(evolve(end, ms=max(0.0, time.time() - request.asked) * 1000))

    return Approvals(
        store=store,
        key=cache(lambda: _key(home / "approvals.key")),
        policy=cache(lambda: tables.model_dump(mode="json", include={"policy", "grants", "plugins"})),
        versions=versions,
        holders=holders,
        redact=shown,
        remember=remember,
        forget=forget,
        record=record,
        asked=asked,
        ended=ended,
    )


def _key(path: Path) -> bytes:
    """Return the key of the home, which the first host that needs it creates."""
    try:
        with suppress(FileNotFoundError):
            return path.read_bytes()
        with suppress(FileExistsError):
            replace_file(path, token_bytes(32), overwrite=False)
        return path.read_bytes()
    except OSError as error:
        raise StateUnwritable(path, error) from error
