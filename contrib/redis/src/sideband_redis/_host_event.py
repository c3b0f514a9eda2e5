"""What hosts publish: names, ids, states and times, and never the content of anything."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_TEXT = 200
_Text = Annotated[str, Field(max_length=MAX_TEXT)]


class HostEvent(BaseModel):
    """An event of a host that shares the server. What it does not have is ``None``.

    Attributes:
        event: the name of the hook, such as ``effect`` or ``approval_start``.
        time: when it happened, by the clock of its machine.
        machine: the name of the machine.
        process: the number of the process.
        session: the id of the session.
        run: the id of the run.
        effect: the id of the effect in the ledger.
        op: the name of the op.
        tool: the name of the tool.
        call: the id of the call of the tool.
        request: the id of the request for approval.
        about: what the request is about: ``grant``, ``tool``, ``effect`` or ``replay``.
        worker: the number of the worker in its host.
        status: how it ended.
        code: the code of its error.
        ms: how long it took, in milliseconds.
        dropped: how many events of this host were lost before this one, because the server was slow or gone.

    Example:
        >>> HostEvent.model_validate_json('{"event": "effect", "time": "2026-01-01T00:00:00Z", "op": "http.get"}').op
        'http.get'
    """

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    event: _Text
    time: datetime
    machine: _Text | None = None
    process: int | None = None
    session: _Text | None = None
    run: _Text | None = None
    effect: _Text | None = None
    op: _Text | None = None
    tool: _Text | None = None
    call: _Text | None = None
    request: _Text | None = None
    about: _Text | None = None
    worker: int | None = None
    status: _Text | None = None
    code: _Text | None = None
    ms: float | None = None
    dropped: int = 0
