"""Decide when a conversation is compacted and where it is cut. Does not call models or store anything."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate

from attrs import field, frozen
from sideband.hooks import Compacted, Compaction
from sideband.messages import Message, ToolResultMessage, UserMessage, to_data
from sideband.settings import CompactionSettings

from .._history import estimate
from ..sessions import BranchSummaryEntry, CompactionEntry, CustomMessageEntry, Entry, MessageEntry
from ._carried_requests import carried_indexes
from ._file_lists import NO_FILES, FileLists, files_of, with_file_lists, without_file_lists

_WORTHWHILE = 100
_LEFT_OUT = re.compile(r"\n*<left-out>.*?</left-out>", re.DOTALL)


@frozen
class Preparation:
    """The plan of a compaction: what is summarized and what is kept.

    Attributes:
        first_kept: the id of the first kept entry.
        messages: the messages to summarize, oldest first, excluding those that were summarized before.
        turn_prefix: the beginning of the current run, if the cut is within it and it is not the first message.
        carried: the ids of entries before ``first_kept`` whose requests models still see verbatim, between the summary
            and the kept messages.
        cut_points: the ids of all entries that may be the first kept one without separating a tool call from its
            results.
        previous_summary: the summary of the previous compaction.
        tokens_before: the estimated size of the context.
        files: the files read and changed so far.
    """

    first_kept: str
    messages: tuple[Message, ...] = field(repr=False)
    turn_prefix: tuple[Message, ...] = field(default=(), repr=False)
    carried: tuple[str, ...] = ()
    cut_points: frozenset[str] = field(default=frozenset(), repr=False)
    previous_summary: str | None = field(default=None, repr=False)
    tokens_before: int = 0
    files: FileLists = NO_FILES

    def event(self, session: str, instructions: str = "") -> Compaction:
        """Build the event that requests a summary from plugins.

        Args:
            session: the id of the session.
            instructions: what the user asked the summary to keep.
        """
        return Compaction(
            session=session,
            first_kept=self.first_kept,
            messages=[to_data(one) for one in self.messages],
            previous_summary=self.previous_summary,
            tokens_before=self.tokens_before,
            instructions=instructions,
            turn_prefix=[to_data(one) for one in self.turn_prefix],
            read_files=self.files.read,
            modified_files=self.files.modified,
        )


@frozen
class _Placed:
    """A message and the id of its entry."""

    entry: str
    message: Message
    tokens: int


def is_due(tokens: int, window: int | None, settings: CompactionSettings) -> bool:
    """Return whether a conversation is long enough to be compacted.

    Args:
        tokens: its size.
        window: the context window of the model in tokens, or ``None`` if unknown: then the conversation is never due.
        settings: the limits. At most half of a small window is reserved.
    """
    return settings.enabled and window is not None and tokens > _limit(window, settings)


def _limit(window: int, settings: CompactionSettings) -> float:
    if settings.percent is not None:
        return window * settings.percent / 100
    return window - min(settings.reserve, window // 2)


def prepare(
    entries: Sequence[Entry],
    settings: CompactionSettings,
    *,
    window: int | None,
    tokens: int,
    pending: Collection[str] = (),
    overflow: bool = False,
    read_only: Collection[str] = (),
) -> Preparation | None:
    """Decide what to summarize, if anything.

    The newest messages are kept: ``settings.keep`` tokens of them, but at most half of what the window allows, and at
    least the newest message with everything that belongs to it. A tool call is never separated from its results.

    Args:
        entries: the path of the session, from its root to its leaf.
        settings: the limits.
        window: the context window of the model in tokens.
        tokens: the current size of the context.
        pending: the ids of tool calls that wait for an approval. They, and the calls of the newest answer that have no
            result yet, are kept. Other calls without a result are not.
        overflow: whether the model rejected the conversation as too long. Then it is always compacted, at most half of
            it is kept, and messages kept by a compaction just now may be compacted again.
        read_only: the names of tools, as models see them, that change nothing.

    Returns:
        The plan, or ``None`` if there are no messages since the last compaction, or too few to be worth it.
    """
    placed = _placed(entries)
    previous = next((one for one in reversed(entries) if isinstance(one, CompactionEntry)), None)
    if not overflow and not fresh_messages(reversed(entries)):
        return None
    start = _start(entries, previous)
    keep = _keep(placed[start:], settings, window, overflow=overflow)
    points = [start + point for point in _cut_points([one.message for one in placed[start:]], pending)]
    cut = _cut(placed, points, keep)
    summarized = sum(one.tokens for one in placed[start:cut])
    if not summarized or (summarized < _WORTHWHILE and not overflow):
        return None
    messages = [one.message for one in placed]
    carried = carried_indexes(messages, cut)
    split = carried[0] if carried and carried[0] > start else cut
    earlier = FileLists(previous.read_files, previous.modified_files) if previous else NO_FILES
    return Preparation(
        first_kept=placed[cut].entry,
        messages=tuple(messages[start:split]),
        turn_prefix=tuple(messages[split:cut]),
        carried=tuple(placed[index].entry for index in carried),
        cut_points=frozenset(placed[point].entry for point in points),
        previous_summary=previous.summary if previous else None,
        tokens_before=tokens,
        files=files_of(messages[start:cut], earlier, read_only=read_only),
    )


def carried_requests(entries: Sequence[Entry], first_kept: str) -> tuple[str, ...]:
    """Return ``Preparation.carried`` for a plugin that chose another cut point than the proposed one.

    Args:
        entries: the path of the session, from its root to its leaf.
        first_kept: the id of the first kept entry, one of ``Preparation.cut_points``.
    """
    placed = _placed(entries)
    cut = next((index for index, one in enumerate(placed) if one.entry == first_kept), len(placed))
    return tuple(placed[index].entry for index in carried_indexes([one.message for one in placed], cut))


def fresh_messages(newest_first: Iterable[Entry]) -> int:
    """Count the messages visible to models that were stored since the last compaction; all of them without one.

    Only their token counts are valid: older ones include messages that were removed.
    """
    count = 0
    for entry in newest_first:
        if isinstance(entry, CompactionEntry):
            break
        count += _message(entry) is not None
    return count


def _placed(entries: Iterable[Entry]) -> list[_Placed]:
    found = ((entry.id, _message(entry)) for entry in entries)
    return [_Placed(entry, message, estimate(message)) for entry, message in found if message is not None]


def _message(entry: Entry) -> Message | None:
    """Return the message that models see for an entry, or ``None``."""
    if isinstance(entry, MessageEntry):
        failed = entry.message.role == "assistant" and entry.message.stop == "error"
        return None if failed else entry.message
    if isinstance(entry, CustomMessageEntry):
        return entry.message
    if isinstance(entry, BranchSummaryEntry):
        return UserMessage(content=entry.summary, source="branch")
    return None


def _start(entries: Sequence[Entry], previous: CompactionEntry | None) -> int:
    """Return the number of messages before the first one that the previous compaction kept."""
    if previous is None:
        return 0
    ids = [entry.id for entry in entries]
    first = previous.first_kept if previous.first_kept in ids else previous.id
    return sum(_message(entry) is not None for entry in entries[: ids.index(first)])


def _keep(placed: Sequence[_Placed], settings: CompactionSettings, window: int | None, *, overflow: bool) -> int:
    keep = settings.keep
    if window is not None:
        keep = min(keep, int(_limit(window, settings)) // 2)
    if overflow:
        keep = min(keep, sum(one.tokens for one in placed) // 2)
    return keep


def _cut(placed: Sequence[_Placed], points: Sequence[int], keep: int) -> int:
    """Return the index of the first kept message; 0 if all are kept."""
    # behind[n]: the tokens of the last n messages
    behind = list(accumulate((one.tokens for one in reversed(placed)), initial=0))
    cut = points[-1] if points else 0
    for point in reversed(points):
        if behind[len(placed) - point] > keep:
            break
        cut = point
    return cut


def _cut_points(messages: Sequence[Message], pending: Collection[str]) -> list[int]:
    """Return the indexes at which a cut separates no call from its results and removes no pending call."""
    owners: dict[str, int] = {}
    open_calls: dict[int, list[str]] = {}
    last_result: dict[int, int] = {}
    newest = -1
    for index, message in enumerate(messages):
        if message.role == "assistant":
            newest = index
            open_calls[index] = [call.id for call in message.tool_calls]
            owners.update((call.id, index) for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage):
            owner = owners.get(message.call, -1)
            # ignore a second result: it must not tie the messages in between together
            if message.call in open_calls.get(owner, ()):
                open_calls[owner].remove(message.call)
                last_result[owner] = index
    points: list[int] = []
    together = -1
    for index, message in enumerate(messages):
        if index > together and message.role != "tool":
            points.append(index)
        together = max(together, last_result.get(index, -1))
    pins = [owners[call] for call in pending if call in owners]
    if open_calls.get(newest):
        pins.append(newest)
    last = min(pins, default=len(messages))
    return [point for point in points if point <= last]


def sliding_window(event: Compaction) -> Compacted:
    """Drop the older messages without a model call. Used if no plugin writes a summary.

    The summary of an earlier compaction and the file lists are kept.

    Example:
        >>> event = Compaction("s1", "e9", [{"role": "user", "content": "hello"}], previous_summary="We greet.")
        >>> print(sliding_window(event).summary)
        We greet.
        <BLANKLINE>
        <left-out>
        Older messages were omitted here to save space, without a summary: 1 in the last compaction.
        </left-out>
    """
    count = len(event.messages) + len(event.turn_prefix)
    note = (
        "<left-out>\nOlder messages were omitted here to save space, without a summary: "
        f"{count:,} in the last compaction.\n</left-out>"
    )
    previous = _LEFT_OUT.sub("", without_file_lists(event.previous_summary or "")).strip()
    text = f"{previous}\n\n{note}" if previous else note
    return Compacted(with_file_lists(text, event.read_files, event.modified_files))
