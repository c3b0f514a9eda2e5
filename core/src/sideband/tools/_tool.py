"""One tool, its name, its results, and the limits of both."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from ..contexts import ToolContext
from ..hooks._frozen import freeze
from ..loading import STRICTER, Resume
from ..ops import Level, Origin
from ..ops._declaration import check_options
from ..ops._from_host import check_host_values, with_host_values
from ..providers import ToolSchema

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)?\Z")
_MAX_NAME = 64
NAME_RULE = f"`name` or `family.name`, each of lower-case words joined by `_`, at most {_MAX_NAME} characters"

SCHEMA_LIMIT = 65_536
"""The maximum length of a tool's description and parameters as JSON, in characters. Every model request has them."""


@frozen
class ResultLimits:
    """The limits of a tool's result. The part of a long text that a model sees is limited by ``output_tokens``.

    Attributes:
        characters: the maximum length of the text that is stored under a handle. The middle of a longer text is
            omitted.
        images: the maximum number of images. Further images are omitted.
        image: the maximum size of one image in bytes. An image is also omitted if its content does not match its media
            type, or if it is not a PNG, JPEG, GIF or WebP: models would reject every request that contains it.
        metadata: the maximum length of the metadata as JSON, in characters. Longer metadata is dropped entirely.
    """

    characters: int = 16 << 20
    images: int = 20
    image: int = 5 << 20
    metadata: int = 16_384


RESULT_LIMITS = ResultLimits()
"""The limits that apply to every result."""


@frozen
class ToolOutput:
    """A tool's result with additional information.

    Args:
        content: text, JSON data, or a list of message parts (``TextPart``, ``ImagePart``).
        is_error: whether the tool failed. The content states the reason.
        terminate: whether the run may end with this result instead of another model call.
        metadata: data that is stored with the result but not sent to the model. Keys that the host sets itself, such as
            ``effect``, ``ms``, ``output``, ``code`` and ``unknown``, are ignored.
    """

    content: Any
    is_error: bool = False
    terminate: bool = False
    metadata: Mapping[str, Any] = field(factory=dict)


@frozen
class Tool:
    """One tool.

    Attributes:
        name: ``memory``, or ``github.stars``. The part before the dot is a namespace, which belongs to one distribution
            if plugins provide it: the one whose plugin has that name, else the only one with tools in it.
        description: the description for the model: what the tool does, and when to use it.
        parameters: a JSON Schema object.
        validate: a function that validates and coerces arguments. It raises a ``ValueError`` whose message names each
            invalid argument.
        run: a function that runs the tool with validated arguments. It returns text, JSON data, or a ``ToolOutput``.
            The model sees the message of an exception.
        level: the highest level of its effects.
        read_only: whether the tool has no side effects. A repeated call with the same result then counts as no
            progress.
        exclusive: whether no other call may run at the same time.
        parallel_group: a name that calls of one turn share if they may run at the same time. The groups run one after
            the other, in the order in which the model first called one of them. Calls of tools without a name are one
            group. If the tool has a parameter ``parallel_group``, the model chooses the group of each call.
        category: a name for tools that are sent to models together, so that a model which sees one sees all of them.
        explicit: whether an agent has the tool only if its ``tools`` have its exact name.
        timeout: the maximum duration in seconds, or ``None`` for the host's default.
        resume: what happens to a call that its host's death interrupted, unless `[policy] resume` is stricter:
            ``replay`` runs it again and answers its recorded effects from the record, so all its effects must be
            dispatched through the context; ``ask`` asks first; ``never`` reports that its outcome is unknown.
        source: the origin of the tool: ``skill github``, ``plugin memory``, ``source tickets``. The host sets it.
        from_host: the parameters that the host fills in, each with the name of its value (``FromHost``). They are not
            part of ``parameters``.

    Raises:
        TypeError: if an option is invalid, or ``from_host`` contains an unknown value. It also is if a class is derived
            from this one, which could change what was checked.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    validate: Callable[[Mapping[str, Any]], dict[str, Any]] = field(repr=False, eq=False)
    run: Callable[[dict[str, Any], ToolContext], Awaitable[Any]] = field(repr=False, eq=False)
    level: Level = Level.MONITORED
    read_only: bool = False
    exclusive: bool = False
    timeout: float | None = None
    resume: Resume = "never"
    source: str = ""
    from_host: Mapping[str, str] = field(factory=dict)
    parallel_group: str = ""
    category: str = ""
    explicit: bool = False

    def __init_subclass__(cls) -> None:
        raise TypeError("no class may be derived from `Tool`")

    def __attrs_post_init__(self) -> None:
        declared = f"tool `{self.name}`"
        check_options(declared, self.level, self.timeout)
        if self.resume not in STRICTER:
            raise TypeError(f"{declared}: `resume` must be one of {', '.join(STRICTER)}, got {self.resume!r}")
        for option in ("parallel_group", "category"):
            if not isinstance(value := getattr(self, option), str):
                raise TypeError(f"{declared}: `{option}` must be a text, got a {type(value).__name__}")
        check_host_values(declared, self.from_host)

    def filled(self, arguments: Mapping[str, Any], origin: Origin) -> Mapping[str, Any]:
        """Return the arguments with the values of the host, whatever the caller passed for them.

        An agent calls it before ``validate``, also for arguments that a guard has replaced.
        """
        return with_host_values(self.from_host, arguments, origin)

    @property
    def model_name(self) -> str:
        """The name that models see: ``github__stars``."""
        return self.name.replace(".", "__")

    @cached_property
    def schema(self) -> ToolSchema:
        """The schema of the tool for model requests, which share it: its parameters are immutable."""
        made = ToolSchema(name=self.model_name, description=self.description, parameters=dict(self.parameters))
        return made.model_copy(update={"parameters": freeze(made.parameters)})

    @cached_property
    def schema_size(self) -> int:
        """The length of the schema as JSON, in characters."""
        return len(self.schema.model_dump_json())


def is_tool_name(name: str) -> bool:
    """Return whether this is a valid tool name: one or two parts joined by a dot, each of lower-case words and ``_``.

    Example:
        >>> is_tool_name("github.stars"), is_tool_name("github__stars"), is_tool_name("Stars")
        (True, False, False)
    """
    return bool(_NAME.match(name)) and len(name.replace(".", "__")) <= _MAX_NAME
