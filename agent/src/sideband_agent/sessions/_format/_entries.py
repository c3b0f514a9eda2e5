"""The entries of a session: what is stored, one by one, and never changed.

Whoever appends an entry makes it without ``id``, ``parent`` and ``time``: the session sets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_hex
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from sideband.messages import Message, UserMessage

RunState = Literal["started", "completed", "aborted", "failed", "parked"]
"""What an entry says of a run: it has begun, or how it ended."""

TIME = r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z)?$"
_Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class _EntryBase(BaseModel):
    """What all entries have.

    Attributes:
        id: unique in its session; set when it is stored.
        parent: the entry that it follows; ``None`` for the first one.
        time: when it was stored, in UTC.
        foreign: what another program's format says of it beyond what fits here, by the name of the format.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: _Id | Literal[""] = ""
    parent: _Id | None = None
    time: str = Field("", pattern=TIME)
    foreign: dict[str, JsonValue] | None = None


class MessageEntry(_EntryBase):
    """A message of the conversation.

    Attributes:
        message: the message.
        run: the run that it belongs to.
        step: the step of the run that it came from.
    """

    type: Literal["message"] = "message"
    message: Message
    run: str | None = None
    step: str | None = None


class RunEntry(_EntryBase):
    """A run began, or ended.

    Attributes:
        run: the id of the run.
        status: which of it.
        source: where its input came from.
        error: why it did not complete, as data.
        resume_at: when going on is worth trying, in seconds since 1970.
    """

    type: Literal["run"] = "run"
    run: str
    status: RunState
    source: str = ""
    error: dict[str, JsonValue] | None = None
    resume_at: float | None = Field(None, allow_inf_nan=False)


class ModelEntry(_EntryBase):
    """Another model was chosen.

    Attributes:
        model: ``provider:model``.
    """

    type: Literal["model"] = "model"
    model: str


class ThinkingEntry(_EntryBase):
    """How much the model may think was changed.

    Attributes:
        level: ``off``, ``low``, ``medium``, ``high``; other programs know more.
    """

    type: Literal["thinking"] = "thinking"
    level: str


class CompactionEntry(_EntryBase):
    """Older messages were replaced by a summary.

    Attributes:
        summary: what models see instead of them.
        first_kept: the first entry that models still see as it is; ``None``: none of those before.
        carried: entries before that one whose requests models see too, between the summary and what is kept.
        tokens_before: how large the context was, in tokens.
        details: what the plugin that wrote it wants to know again.
        plugin: that plugin; ``None`` for the default one.
        read_files, modified_files: what was read and changed up to here, in this compaction and those before.
    """

    type: Literal["compaction"] = "compaction"
    summary: str
    first_kept: _Id | None = None
    carried: tuple[_Id, ...] = ()
    tokens_before: int = Field(0, ge=0)
    details: JsonValue = None
    plugin: str | None = None
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()


class BranchSummaryEntry(_EntryBase):
    """What was done on a branch that was left.

    Attributes:
        from_: the last entry of that branch.
        summary: what was done there.
    """

    type: Literal["branch_summary"] = "branch_summary"
    from_: _Id | None = None
    summary: str


class LabelEntry(_EntryBase):
    """An entry was marked.

    Attributes:
        target: the marked entry.
        label: the mark; ``None`` takes it away.
    """

    type: Literal["label"] = "label"
    target: _Id
    label: str | None = None


class NameEntry(_EntryBase):
    """The session was named.

    Attributes:
        name: its name; ``None`` takes it away.
    """

    type: Literal["name"] = "name"
    name: str | None = None


class CustomEntry(_EntryBase):
    """Data of a plugin's own, which no model sees.

    Attributes:
        plugin: the plugin.
        kind: what it is, as the plugin calls it.
        data: the data.
    """

    type: Literal["custom"] = "custom"
    plugin: str = ""
    kind: str
    data: JsonValue = None


class CustomMessageEntry(_EntryBase):
    """A message that a plugin added, which models see.

    Attributes:
        plugin: the plugin.
        message: the message.
        display: whether users see it too.
    """

    type: Literal["custom_message"] = "custom_message"
    plugin: str = ""
    message: UserMessage
    display: bool = True


class LeafEntry(_EntryBase):
    """The conversation was taken back: what comes next follows another entry.

    Attributes:
        target: that entry; ``None``: the beginning.
    """

    type: Literal["leaf"] = "leaf"
    target: _Id | None = None


class ChannelEntry(_EntryBase):
    """The user went on somewhere else.

    Attributes:
        channel: ``cli``, ``server``, ….
    """

    type: Literal["channel"] = "channel"
    channel: str


class ForeignEntry(_EntryBase):
    """What this version does not know: another program's entry, or a newer version's. No model sees it.

    Attributes:
        data: the entry as it was.
    """

    type: Literal["foreign"] = "foreign"
    data: dict[str, JsonValue]


Entry = (
    MessageEntry
    | RunEntry
    | ModelEntry
    | ThinkingEntry
    | CompactionEntry
    | BranchSummaryEntry
    | LabelEntry
    | NameEntry
    | CustomEntry
    | CustomMessageEntry
    | LeafEntry
    | ChannelEntry
    | ForeignEntry
)
"""Any entry, told apart by its ``type``."""

_ANY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="type")])
_PLACE: TypeAdapter[_EntryBase] = TypeAdapter(_EntryBase)


def new_id() -> str:
    """An id that no other entry or session has: 64 random bits as hexadecimal digits."""
    return token_hex(8)


def now() -> str:
    """The time as entries have it.

    Example:
        >>> len(now())
        24
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def record_of(entry: Entry) -> dict[str, Any]:
    """An entry as it is stored, which ``entry_of`` reads back."""
    return entry.model_dump(mode="json", exclude_none=True)


def entry_of(record: Mapping[str, Any]) -> tuple[Entry, str]:
    """The entry that a record holds, and what is wrong with it; empty if nothing is.

    What has an id but is no entry that this version knows becomes a ``ForeignEntry``.

    Raises:
        ValueError: it holds none; says why.
    """
    try:
        entry = _ANY.validate_python(record)
    except ValidationError as error:
        problem = _describe(error)
    else:
        if entry.id:
            return entry, ""
        raise ValueError("it has no id")
    if not isinstance(record.get("type"), str):
        raise ValueError("it has no type")  # noqa: TRY004 - it is the content that is wrong
    try:
        place = _PLACE.validate_python({name: record[name] for name in ("id", "parent", "time") if name in record})
        foreign = ForeignEntry(id=place.id, parent=place.parent, time=place.time, data=dict(record))
    except ValidationError as error:
        raise ValueError(_describe(error)) from error
    if not foreign.id:
        raise ValueError("it has no id")
    return foreign, problem


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
