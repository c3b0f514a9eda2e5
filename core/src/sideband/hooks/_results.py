"""The values that hook implementations return."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, Final

from attrs import Attribute, field, frozen
from attrs.validators import in_, instance_of, is_callable, matches_re, optional

from ..contexts import APPROVAL_MODES, ApprovalMode
from ._frozen import as_tuple, freeze

__all__ = [
    "UNCHANGED",
    "Again",
    "Allow",
    "Ask",
    "Cancel",
    "ChatCommand",
    "ClientServer",
    "Compact",
    "Compacted",
    "Continue",
    "Deny",
    "GiveUp",
    "Handled",
    "Park",
    "Patch",
    "Redactor",
    "Replace",
    "Resources",
    "Retry",
    "Route",
    "RouteRequest",
    "Section",
    "Transform",
    "Unchanged",
]

MAX_FOLDERS = 100
"""The number of folders of skills of one plugin that are searched."""

_text = instance_of(str)
_flag = instance_of(bool)


class Unchanged(Enum):
    """The type of ``UNCHANGED``, the sentinel for a patch that keeps the content (``None`` is a valid content)."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""In a patch: the field keeps its value."""


@frozen
class Continue:
    """``input``: continue with the text unchanged. Equivalent to returning ``None``."""


@frozen
class Transform:
    """``input``: continue with another text.

    Args:
        text: the new text, which the next implementations see.
    """

    text: str = field(validator=_text)


@frozen
class Handled:
    """``input``: the input is handled. No further implementation and no model is called.

    Args:
        reply: the reply to the user; may be empty.
        plugin: the plugin that handled it; set by the dispatcher.
    """

    reply: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class Allow:
    """``tool_call``, ``op_call``: no objection. Equivalent to ``None``, except for its note.

    Args:
        note: a note for the record and the user; may be empty.
    """

    note: str = field(default="", validator=_text)


@frozen
class Deny:
    """``tool_call``, ``op_call``: deny the call. The first ``Deny`` wins; no further implementation is called.

    Args:
        reason: one sentence for the model and the user: what is denied, and what would be allowed.
        halt: whether to end the whole run, not only this call.
        hint: what to do next, such as when to try again; may be empty.
    """

    reason: str = field(validator=_text)
    halt: bool = field(default=False, validator=_flag)
    hint: str = field(default="", validator=_text)


def _is_mapping(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"`{attribute.name}` must be a mapping with string keys, got {type(value).__name__}")


@frozen
class Replace:
    """``tool_call``, ``op_call``: allow the call with other arguments.

    The arguments are validated again, and every implementation that has already answered is called again with them.

    Args:
        arguments: all arguments, not only the changed ones: ``Replace({**event.arguments, "depth": 1})``.
    """

    arguments: Mapping[str, Any] = field(validator=_is_mapping)


@frozen
class Ask:
    """``tool_call``, ``op_call``: ask the user. A ``Deny`` of any implementation takes precedence.

    Args:
        question: one sentence that can be answered with yes or no.
        lasting: whether the answer may hold for the session or always, instead of only once.
        preview: what is shown below the arguments of a tool call; an effect has the preview of its op.
        mode: the approval mode that the session gets if a tool call is approved; ``None`` to keep its mode.
    """

    question: str = field(validator=_text)
    lasting: bool = field(default=True, validator=_flag)
    preview: str = field(default="", validator=_text)
    mode: ApprovalMode | None = field(default=None, validator=optional(in_(APPROVAL_MODES)))


@frozen
class Patch:
    """``tool_result``: change parts of the result. Omitted fields are unchanged.

    Args:
        content: the new content.
        is_error: whether the result is sent to the model as an error.
        terminate: whether the run may end with this result instead of another model call.
        note: a sentence that is shown to the model after the content; notes of several plugins accumulate.
    """

    content: Any = field(default=UNCHANGED, converter=freeze)
    is_error: bool | None = field(default=None, validator=optional(_flag))
    terminate: bool | None = field(default=None, validator=optional(_flag))
    note: str = field(default="", validator=_text)


@frozen
class Cancel:
    """``compaction``, ``session_before_switch``, ``…_fork``, ``…_tree``: cancel the operation.

    Args:
        reason: one sentence for the user.
        plugin: the plugin that cancelled it; set by the dispatcher.
    """

    reason: str = field(validator=_text)
    plugin: str = ""


@frozen
class Compacted:
    """``compaction``: use this summary instead of the default one.

    Args:
        summary: the text that replaces the omitted messages.
        first_kept: the id of the first entry to keep; ``None`` for ``first_kept`` of the event.
        details: plugin-specific data, stored with the entry.
        plugin: the plugin that wrote the summary; set by the dispatcher.
    """

    summary: str = field(validator=_text)
    first_kept: str | None = field(default=None, validator=optional(_text))
    details: Mapping[str, Any] = field(factory=dict, converter=freeze, validator=_is_mapping)
    plugin: str = ""


def _is_at_least_0(_: object, attribute: Attribute[Any], value: float) -> None:
    if not value >= 0:
        raise ValueError(f"`{attribute.name}` must be at least 0, got {value!r}")


@frozen
class Retry:
    """``model_error``: repeat the model call.

    Args:
        delay: the delay in seconds.
        kind: the class of the failure, such as ``overloaded``, for messages and records.
        plugin: the plugin that decided; set by the dispatcher.
    """

    delay: float = field(converter=float, validator=_is_at_least_0)
    kind: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class Compact:
    """``model_error``: the conversation is too long for the model; compact it, then repeat the call.

    Args:
        kind: the class of the failure.
        plugin: the plugin that decided; set by the dispatcher.
    """

    kind: str = field(default="context_overflow", validator=_text)
    plugin: str = ""


@frozen
class Park:
    """``model_error``: park the run, so that it can be resumed later from its last stored step.

    Args:
        until: the earliest time to resume, in seconds since 1970; ``None`` if unknown.
        kind: the class of the failure.
        hint: what the user can do.
        plugin: the plugin that decided; set by the dispatcher.
    """

    until: float | None = None
    kind: str = field(default="", validator=_text)
    hint: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class GiveUp:
    """``model_error``: don't call this model again.

    The next model of the fallback chain is tried, if any; otherwise the run fails and can be resumed.

    Args:
        kind: the class of the failure, such as ``auth``.
        hint: what the user can do.
        plugin: the plugin that decided; set by the dispatcher.
    """

    kind: str = field(default="", validator=_text)
    hint: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class ChatCommand:
    """``chat_commands``: a slash command of a chat, such as ``/todo``.

    Args:
        name: the name after the slash: lower-case words joined by ``-``, ``_`` or ``:``.
        summary: one line for the list of commands.
        run: an async function that takes the text after the name and the agent's context, and returns the text to show
            to the user, which is not sent to the model. With ``None``, the command is sent as a message, which the
            plugin replaces in its hook ``input``.
        usage: the arguments, for the list of commands.
    """

    name: str = field(validator=[_text, matches_re(r"[a-z][a-z0-9]*([-_:][a-z0-9]+)*")])
    summary: str = field(validator=_text)
    run: Callable[[str, Any], Awaitable[str | None]] | None = field(
        default=None, repr=False, validator=optional(is_callable())
    )
    usage: str = field(default="", validator=_text)


@frozen
class ClientServer:
    """``client_servers``: a program that is a server of tools, which a client passes and its user has accepted.

    Args:
        name: the namespace of its tools: lower-case words joined by ``_``. It stands for exactly this program.
        command: the program and its arguments.
        environment: further environment variables.
        read: the folders and files that it may read.
        network: whether it may use the network.
    """

    name: str = field(validator=_text)
    command: Sequence[str] = field(converter=as_tuple)
    environment: Mapping[str, str] = field(factory=dict, converter=freeze, repr=False)
    read: Sequence[str] = field(default=(), converter=as_tuple)
    network: bool = False


@frozen
class Section:
    """``sections``: a part of the system prompt.

    Args:
        name: a name, unique within the plugin, by which the section can be found and disabled.
        text: the text. It should be the same on every call, so that the provider's prompt cache is used.
    """

    name: str = field(validator=_text)
    text: str = field(validator=_text)


def _is_pattern(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"`{attribute.name}` must be a regular expression as str, got {type(value).__name__}")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"`{attribute.name}` is not a valid regular expression ({error}): {value}") from None


@frozen
class RouteRequest:
    """An input that a route has matched.

    Attributes:
        run: the id of the run.
        text: the text of the input, as changed by ``input`` and without secrets.
        source: the origin of the input, as in ``Input``.
        channel: the channel of the agent, such as ``cli`` or ``server``.
        match: what the route's ``match`` found: an ``re.Match`` for a pattern, otherwise the result of the function.
        attachments: the number of images, files and recordings of the input.
    """

    run: str
    text: str
    source: str
    channel: str
    match: Any
    attachments: int = 0


def _can_match(_: object, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, re.Pattern):
        value = value.pattern
    elif callable(value):
        return
    _is_pattern(_, attribute, value)


@frozen
class Route:
    """``routes``: an answer to inputs that match, without a call of the model.

    Args:
        name: lower-case words joined by ``-``, unique within the plugin.
        match: a regular expression, which may match anywhere in the text; or a function that takes the text and
            returns what it found, ``None`` if the text does not match. It must be fast: it cannot be interrupted.
        handler: a function, async or not, that takes a ``RouteRequest`` and the agent's context, and returns the reply,
            or ``None`` to decline.
        order: routes with lower numbers are tried first.
    """

    name: str = field(validator=[_text, matches_re(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")])
    match: str | re.Pattern[str] | Callable[[str], Any] = field(validator=_can_match)
    handler: Callable[[RouteRequest, Any], Awaitable[str | None] | str | None] = field(
        repr=False, validator=is_callable()
    )
    order: int = field(default=0, validator=instance_of(int), kw_only=True)


def _is_not_blank(_: object, attribute: Attribute[Any], value: str) -> None:
    if not value.strip():
        raise ValueError(f"`{attribute.name}` must not be empty")


@frozen
class Again:
    """``answer``: store the message, then ask the model once more.

    Args:
        instruction: what the model should do better, which it sees as a message of the plugin.
    """

    instruction: str = field(validator=[_text, _is_not_blank])


@frozen
class Redactor:
    """``redactors``: the pattern of one kind of secret.

    Args:
        name: the name that replaces a match, in brackets, such as ``github-token``.
        pattern: a regular expression; every match is replaced before anything is written or returned.
    """

    name: str = field(validator=_text)
    pattern: str = field(validator=_is_pattern)


def _as_folders(value: Iterable[Path | str]) -> tuple[Path | str, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"`skill_folders` must be a list, got {type(value).__name__}")
    return tuple(islice(value, MAX_FOLDERS + 1))  # here a generator that fails is a fault of its plugin


@frozen
class Resources:
    """``resources_discover``: what a plugin provides besides its code.

    Args:
        skill_folders: absolute paths of existing folders, each of which is a skill or contains skills; at most 100. A
            path that cannot be used is listed as a problem with the name of the plugin, and the others are used.
    """

    skill_folders: tuple[Path | str, ...] = field(default=(), converter=_as_folders)
