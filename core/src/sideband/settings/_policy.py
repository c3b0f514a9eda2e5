"""The table ``[policy]``: which plugins may load, how workers are isolated, and limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo, field_validator

from ..loading import Resume
from ..plugins._kinds import KINDS, When
from ..sandboxing import Isolation
from ..suggestions import did_you_mean
from ._byte_counts import format_bytes, parse_bytes

_CALL = "call"
_MIN_MEMORY = 32 << 20
_MAX_MEMORY = 16 << 40


def _memory(value: Any) -> int:
    count = parse_bytes(value)
    if not _MIN_MEMORY <= count <= _MAX_MEMORY:
        raise ValueError("must be between 32M, the minimum for a worker, and 16T")
    return count


_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Memory = Annotated[
    int, BeforeValidator(_memory, json_schema_input_type=int | str), PlainSerializer(format_bytes, return_type=str)
]


class Policy(BaseModel):
    """The table ``[policy]``.

    Example:
        >>> policy = Policy(isolation="no-namespaces,call", memory="512M")
        >>> policy.tier.label, policy.alone, policy.memory
        ('no-namespaces', True, 536870912)
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    isolation: str = Field(
        default="full",
        description="the weakest isolation tier for workers; with `,call`, each call gets its own worker",
    )
    strict: bool = Field(default=False, description="whether an unusable plugin is an error at startup")
    timeout: _Seconds = Field(default=60.0, description="the default timeout of a call in seconds")
    maximum_timeout: _Seconds = Field(
        default=3600.0,
        description="the maximum timeout in seconds that a skill, tool or call may set",
        validate_default=True,
    )
    memory: _Memory = Field(default=1 << 30, description="the default limit of a worker's memory, such as `1G`")
    maximum_memory: _Memory = Field(
        default=4 << 30,
        description="the maximum memory limit that a skill may set, such as `4G`",
        validate_default=True,
    )
    workers: int = Field(
        default=32, ge=1, le=1000, description="the maximum number of worker processes; further calls wait in a queue"
    )
    idle_seconds: float = Field(
        default=300.0, ge=1, allow_inf_nan=False, description="the seconds after which an idle worker is stopped"
    )
    resume: Resume = Field(
        default="replay",
        description="what happens to a call of a skill that its host's death interrupted: `replay` runs it again and "
        "answers its recorded effects from the record, `ask` asks first, `never` reports its outcome as unknown",
    )
    deny: dict[str, str] = Field(default_factory=dict, description="plugins that must not load, each with a reason")
    only: list[str] | None = Field(default=None, description="the only plugins that may load, such as `op.*`")
    conflicts: dict[str, str] = Field(
        default_factory=dict, description="kind.name = the distribution to use if several provide this plugin"
    )
    files: dict[str, str] = Field(
        default_factory=dict,
        description="kind.name = the path of a local file that is this plugin, relative to the file that sets it; it "
        "is loaded only if its current content was trusted with `sideband plugins trust`",
    )
    deadlines: dict[str, float] = Field(
        default_factory=dict, description="hook = the deadline in seconds, shared by all plugins"
    )
    require_open_secrets: bool = Field(
        default=False, description="whether to refuse to send data while the values of stored secrets are unknown"
    )
    guards: list[str] = Field(
        default_factory=list, description="the guards that must be active; without one of them, no host starts"
    )
    order: dict[str, list[str]] = Field(default_factory=dict, description="hook = plugins, in the order to run them")

    @property
    def tier(self) -> Isolation:
        """The weakest isolation tier for workers."""
        return split_isolation(self.isolation)[0]

    @cached_property
    def alone(self) -> bool:
        """Whether each call gets its own worker."""
        return split_isolation(self.isolation)[1]

    @field_validator("isolation")
    @classmethod
    def _known_isolation(cls, value: str) -> str:
        tier, alone = split_isolation(value)
        return f"{tier.label},{_CALL}" if alone else tier.label

    @field_validator("maximum_timeout", "maximum_memory")
    @classmethod
    def _at_least_the_default(cls, value: float, info: ValidationInfo) -> float:
        name = str(info.field_name).removeprefix("maximum_")
        default = info.data.get(name, 0)
        if value < default:
            written = format_bytes(default) if name == "memory" else f"{default:g}"
            raise ValueError(f"must be at least `{name}`, which is {written}")
        return value

    @field_validator("files", mode="before")
    @classmethod
    def _known_kinds(cls, value: Any) -> Any:
        for label, file in value.items() if isinstance(value, dict) else ():
            kind, _, name = str(label).partition(".")
            if isinstance(file, dict):
                raise ValueError(  # noqa: TRY004  pydantic converts this type only
                    f'quote the name, as in "{label}.{next(iter(file), "NAME")}" = "FILE"'
                )
            if kind not in KINDS or not name:
                near = did_you_mean(kind, KINDS) if kind not in KINDS else ""
                raise ValueError(f"expected KIND.NAME such as `hook.notes` as the name, got `{label}`{near}")
            if KINDS[kind].when is When.NEVER:
                raise ValueError(f"`{label}` is a skill, which is a folder: name its folder in `[skills] folders`")
            if not file:
                raise ValueError(f"expected the path of a file for `{label}`, got an empty text")
        return value

    @field_validator("order", "deadlines")
    @classmethod
    def _known_hooks(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value:
            from ..hooks import HOOK_SPECS  # noqa: PLC0415  slow to import, and rarely needed

            for hook in value:
                if hook not in HOOK_SPECS:
                    raise ValueError(f"unknown hook `{hook}`{did_you_mean(hook, HOOK_SPECS)}")
        return value


def resolve_files(values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the settings of a file with absolute paths of plugins. Values of other types are kept, and refused later.

    Args:
        values: the settings.
        base: the folder of the file.
    """
    policy = values.get("policy")
    if not isinstance(policy, dict) or not isinstance(files := policy.get("files"), dict):
        return dict(values)
    # `expanduser` of pathlib raises an exception for an unknown user. An empty path is refused later.
    absolute = {
        label: str(base / os.path.expanduser(file)) if file and isinstance(file, str) else file  # noqa: PTH111
        for label, file in files.items()
    }
    return {**values, "policy": {**policy, "files": absolute}}


def split_isolation(isolation: str) -> tuple[Isolation, bool]:
    """Parse an isolation into its tier and whether each call gets its own worker."""
    words = [word.strip() for word in isolation.split(",")]
    tiers = [word for word in words if word != _CALL]
    if len(tiers) > 1 or len(words) - len(tiers) > 1:
        raise ValueError(f"expected a tier, `{_CALL}`, or both separated by a comma")
    try:
        tier = Isolation.parse(tiers[0]) if tiers else Isolation.FULL
    except ValueError:
        known = ", ".join(f"`{tier.label}`" for tier in Isolation)
        raise ValueError(f"expected one of {known}; append `,{_CALL}` to give each call its own worker") from None
    return tier, len(words) > len(tiers)
