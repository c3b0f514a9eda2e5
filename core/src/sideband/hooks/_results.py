"""What implementations return. Each is made by a plugin and read by the dispatcher of its hook's kind."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import Attribute, field, frozen
from attrs.validators import instance_of, is_callable, matches_re, optional

from ._frozen import as_tuple, freeze

__all__ = [
    "UNCHANGED",
    "Allow",
    "Ask",
    "Cancel",
    "ChatCommand",
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
    "Retry",
    "Route",
    "Section",
    "Transform",
    "Unchanged",
]

_text = instance_of(str)
_flag = instance_of(bool)


class Unchanged(Enum):
    """The type of ``UNCHANGED``, which says that a patch leaves the content as it is (``None`` is a content)."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@frozen
class Continue:
    """``input``: go on with the text as it is. The same as returning ``None``."""


@frozen
class Transform:
    """``input``: go on with another text.

    Args:
        text: the new text, which the next implementations see.
    """

    text: str = field(validator=_text)


@frozen
class Handled:
    """``input``: the input needs no agent. No further implementation sees it, and no model is called.

    Args:
        reply: what the user gets; empty for nothing.
        plugin: who handled it; set by the dispatcher.
    """

    reply: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class Allow:
    """``tool_call``, ``op_call``: nothing to object. Differs from ``None`` only by its note.

    Args:
        note: what the record and the user should know about it; empty for nothing.
    """

    note: str = field(default="", validator=_text)


@frozen
class Deny:
    """``tool_call``, ``op_call``: it must not happen. The first one wins, and nobody further is asked.

    Args:
        reason: one sentence for the model and the user: what is wrong, and what would be allowed.
        halt: whether the whole run must end, not only this call.
    """

    reason: str = field(validator=_text)
    halt: bool = field(default=False, validator=_flag)


def _is_mapping(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"`{attribute.name}` must be a mapping from names to values, not {type(value).__name__}")


@frozen
class Replace:
    """``tool_call``, ``op_call``: it may happen, but with other arguments.

    They are validated again, and every implementation that has answered already is asked again about them.

    Args:
        arguments: all arguments, not only the changed ones: ``Replace({**event.arguments, "depth": 1})``.
    """

    arguments: Mapping[str, Any] = field(validator=_is_mapping)


@frozen
class Ask:
    """``tool_call``, ``op_call``: a person must decide. A ``Deny`` of anybody is stronger.

    Args:
        question: what the person is asked: one sentence that can be answered with yes or no.
    """

    question: str = field(validator=_text)


@frozen
class Patch:
    """``tool_result``: change some of the result. What is left out stays as the implementation before has left it.

    Args:
        content: the new content.
        is_error: whether the model is told that the tool failed.
        terminate: whether the run may end with this result instead of another model call.
        note: a sentence that is shown to the model beside the content; notes add up.
    """

    content: Any = field(default=UNCHANGED, converter=freeze)
    is_error: bool | None = field(default=None, validator=optional(_flag))
    terminate: bool | None = field(default=None, validator=optional(_flag))
    note: str = field(default="", validator=_text)


@frozen
class Cancel:
    """``compaction``, ``session_before_switch``, ``session_before_fork``: it must not happen now.

    Args:
        reason: one sentence for the user.
        plugin: who cancelled it; set by the dispatcher.
    """

    reason: str = field(validator=_text)
    plugin: str = ""


@frozen
class Compacted:
    """``compaction``: done, with this summary instead of the default one.

    Args:
        summary: the text that stands for what was left out.
        first_kept: the id of the first entry that is kept; ``None`` for the one that the preparation proposed.
        details: data of the plugin's own, stored with the entry.
        plugin: who did it; set by the dispatcher.
    """

    summary: str = field(validator=_text)
    first_kept: str | None = field(default=None, validator=optional(_text))
    details: Mapping[str, Any] = field(factory=dict, converter=freeze, validator=_is_mapping)
    plugin: str = ""


def _is_at_least_0(_: object, attribute: Attribute[Any], value: float) -> None:
    if not value >= 0:
        raise ValueError(f"`{attribute.name}` must be 0 or more, not {value!r}")


@frozen
class Retry:
    """``model_error``: make the same model call again.

    Args:
        delay: seconds until then.
        kind: the class of the failure, ``overloaded`` for instance; for people and records.
        plugin: who said so; set by the dispatcher.
    """

    delay: float = field(converter=float, validator=_is_at_least_0)
    kind: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class Compact:
    """``model_error``: the conversation is too long for the model; make it shorter, then call again.

    Args:
        kind: the class of the failure.
        plugin: who said so; set by the dispatcher.
    """

    kind: str = field(default="context_overflow", validator=_text)
    plugin: str = ""


@frozen
class Park:
    """``model_error``: end the run for now; it can go on later, from where it stands.

    Args:
        until: when that is worth trying, in seconds since 1970; ``None`` if nobody knows.
        kind: the class of the failure.
        hint: what the user can do.
        plugin: who said so; set by the dispatcher.
    """

    until: float | None = None
    kind: str = field(default="", validator=_text)
    hint: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class GiveUp:
    """``model_error``: no further call of this model can help now.

    The next model of the fallback chain is tried, if there is one; else the run fails, and can be resumed.

    Args:
        kind: the class of the failure, ``auth`` for instance.
        hint: what the user can do.
        plugin: who said so; set by the dispatcher.
    """

    kind: str = field(default="", validator=_text)
    hint: str = field(default="", validator=_text)
    plugin: str = ""


@frozen
class ChatCommand:
    """``chat_commands``: something that a user of a chat can ask for with a slash, ``/todo``. No model sees it.

    Args:
        name: what follows the slash: lower-case words joined with ``-``.
        summary: one line for the list of commands.
        run: an async function of the text after the name, and of the agent's context; returns what the user is shown.
    """

    name: str = field(validator=[_text, matches_re(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")])
    summary: str = field(validator=_text)
    run: Callable[[str, Any], Awaitable[str | None]] = field(repr=False, validator=is_callable())


@frozen
class Section:
    """``sections``: a part of the system prompt.

    Args:
        name: unique among the sections of its plugin; it can be looked for and switched off by it.
        text: the text. It should be the same on every call, so that the provider's cache holds.
    """

    name: str = field(validator=_text)
    text: str = field(validator=_text)


def _is_pattern(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"`{attribute.name}` must be a regular expression as str, not {type(value).__name__}")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"`{attribute.name}` is no regular expression ({error}): {value}") from None


@frozen
class Route:
    """``routes``: which tools to suggest for which requests.

    Args:
        pattern: a regular expression that is searched for in the request.
        tools: the names of the tools to suggest then. It can't widen what the session may use.
    """

    pattern: str = field(validator=_is_pattern)
    tools: tuple[str, ...] = field(converter=as_tuple)


@frozen
class Redactor:
    """``redactors``: what secrets of one sort look like.

    Args:
        name: what replaces a match, in brackets: ``github-token``.
        pattern: a regular expression; every match is replaced before anything is written or returned.
    """

    name: str = field(validator=_text)
    pattern: str = field(validator=_is_pattern)
