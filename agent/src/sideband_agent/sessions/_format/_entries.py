"""The entries of a session. They are appended and never changed.

Callers create entries without ``id``, ``parent`` and ``time``; the session sets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_hex
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from sideband.messages import Message, UserMessage
from sideband.validation import problem_text

RunState = Literal["started", "completed", "aborted", "failed", "parked"]
"""The state of a run: started, or how it ended."""

RouteState = Literal["started", "waiting", "handled", "declined", "failed"]
"""The state of a route: started, waiting for an approval, or how it ended."""

GoalStatus = Literal["set", "reached", "dropped"]
"""The status of a goal: it is set, or how it ended."""

# Not `\d`: with the digits of all scripts, its validator takes 0.8 MB.
TIME = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z)?$"
_Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class _EntryBase(BaseModel):
    """The common fields of all entries.

    Attributes:
        id: unique in its session; set when the entry is stored.
        parent: the entry that it follows; ``None`` for the first one.
        time: when it was stored, in UTC.
        foreign: fields of another program's format that this one does not have, by the name of the format.
    """

    # Each kind is built on first use: most sessions have few kinds.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    id: _Id | Literal[""] = ""
    parent: _Id | None = None
    time: str = Field(default="", pattern=TIME)
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
    """The beginning or the end of a run.

    Attributes:
        run: the id of the run.
        status: the state of the run.
        source: where its input came from.
        error: why it did not complete, as data.
        resume_at: when to resume it, in seconds since 1970.
    """

    type: Literal["run"] = "run"
    run: str
    status: RunState
    source: str = ""
    error: dict[str, JsonValue] | None = None
    resume_at: float | None = Field(default=None, allow_inf_nan=False)


class RouteEntry(_EntryBase):
    """The beginning or the end of a route that matched the input of a run.

    Attributes:
        run: the id of the run.
        plugin: the plugin that added the route.
        name: the name of the route.
        status: the state of the route.
        reason: why it matched, why it declined or how it failed.
        seed: the seed of the keys of its effects, unless it has ended.
    """

    type: Literal["route"] = "route"
    run: str
    plugin: str
    name: str
    status: RouteState
    reason: str = ""
    seed: str = ""


class ModelEntry(_EntryBase):
    """A change of the model.

    Attributes:
        model: ``provider:model``.
    """

    type: Literal["model"] = "model"
    model: str


class ThinkingEntry(_EntryBase):
    """A change of the level of thinking.

    Attributes:
        level: ``off``, ``low``, ``medium`` or ``high``; other programs have further levels.
    """

    type: Literal["thinking"] = "thinking"
    level: str


class GoalEntry(_EntryBase):
    """A new goal of the session, or the end of its goal.

    Attributes:
        goal: the goal.
        status: ``set``, or how it ended.
    """

    type: Literal["goal"] = "goal"
    goal: str
    status: GoalStatus = "set"


class CompactionEntry(_EntryBase):
    """A compaction, which replaces older messages by a summary.

    Attributes:
        summary: the summary that models see instead.
        first_kept: the first entry that models still see; ``None`` if they see none of the earlier ones.
        carried: earlier entries whose requests models still see, between the summary and the kept messages.
        tokens_before: the size of the context in tokens.
        details: data that the plugin stored for its next compaction.
        plugin: the plugin that wrote the summary; ``None`` for the default.
        read_files, modified_files: the files read and changed so far, including earlier compactions.
    """

    type: Literal["compaction"] = "compaction"
    summary: str
    first_kept: _Id | None = None
    carried: tuple[_Id, ...] = ()
    tokens_before: int = Field(default=0, ge=0)
    details: JsonValue = None
    plugin: str | None = None
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()


class BranchSummaryEntry(_EntryBase):
    """A summary of a branch that was left.

    Attributes:
        from_: the last entry of that branch.
        summary: the summary.
    """

    type: Literal["branch_summary"] = "branch_summary"
    from_: _Id | None = None
    summary: str


class LabelEntry(_EntryBase):
    """A label of an entry, or its removal.

    Attributes:
        target: the entry.
        label: the label; ``None`` to remove it.
    """

    type: Literal["label"] = "label"
    target: _Id
    label: str | None = None


class NameEntry(_EntryBase):
    """A name of the session, or its removal.

    Attributes:
        name: its name; ``None`` to remove it.
    """

    type: Literal["name"] = "name"
    name: str | None = None


class CustomEntry(_EntryBase):
    """Data of a plugin, which models do not see.

    Attributes:
        plugin: the plugin.
        kind: the kind of data, chosen by the plugin.
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
    """A rewind of the conversation: the next entry follows another one.

    Attributes:
        target: that entry; the beginning if ``None``.
    """

    type: Literal["leaf"] = "leaf"
    target: _Id | None = None


class ChannelEntry(_EntryBase):
    """A change of the channel.

    Attributes:
        channel: ``cli``, ``server``, ….
    """

    type: Literal["channel"] = "channel"
    channel: str


class ForeignEntry(_EntryBase):
    """An unknown entry of another program or a newer version, which models do not see.

    Attributes:
        data: the original entry.
    """

    type: Literal["foreign"] = "foreign"
    data: dict[str, JsonValue]


Entry = (
    MessageEntry
    | RunEntry
    | RouteEntry
    | ModelEntry
    | ThinkingEntry
    | GoalEntry
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
"""Any entry, discriminated by its ``type``."""

_ANY: TypeAdapter[Entry] = TypeAdapter(
    Annotated[Entry, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def new_id() -> str:
    """Return a unique id for an entry or a session: 64 random bits in hexadecimal."""
    return token_hex(8)


def now() -> str:
    """Return the current time in the format of entries.

    Example:
        >>> len(now())
        24
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def record_of(entry: Entry) -> dict[str, Any]:
    """Return the record of an entry, the inverse of ``entry_of``."""
    return entry.model_dump(mode="json", exclude_none=True)


def entry_of(record: Mapping[str, Any]) -> tuple[Entry, str]:
    """Return the entry of a record, and a problem that is empty if the record is valid.

    A record with an id that is not a known entry becomes a ``ForeignEntry``.

    Raises:
        ValueError: if the record is not an entry.
    """
    try:
        entry = _ANY.validate_python(record)
    except ValidationError as error:
        problem = _describe(error)
    else:
        if entry.id:
            return entry, ""
        raise ValueError("no id")
    if not isinstance(record.get("type"), str):
        raise ValueError("no type")  # noqa: TRY004 - the content is wrong, not the type
    try:
        place = _EntryBase.model_validate({name: record[name] for name in ("id", "parent", "time") if name in record})
        foreign = ForeignEntry(id=place.id, parent=place.parent, time=place.time, data=dict(record))
    except ValidationError as error:
        raise ValueError(_describe(error)) from error
    if not foreign.id:
        raise ValueError("no id")
    return foreign, problem


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {problem_text(first)}" if where else problem_text(first)
