"""The table ``[policy]``: what may be loaded, what may run and where, and how much of everything."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo, field_validator

from ..sandboxing import Isolation
from ..suggestions import did_you_mean
from ._byte_counts import format_bytes, parse_bytes

_CALL = "call"
_LEAST_MEMORY = 32 << 20
_MOST_MEMORY = 16 << 40


def _memory(value: Any) -> int:
    count = parse_bytes(value)
    if not _LEAST_MEMORY <= count <= _MOST_MEMORY:
        raise ValueError("write from 32M, which a worker needs, to 16T")
    return count


_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Memory = Annotated[int, BeforeValidator(_memory), PlainSerializer(format_bytes, return_type=str)]


class Policy(BaseModel):
    """The table ``[policy]``.

    Example:
        >>> policy = Policy(isolation="no-namespaces,call", memory="512M")
        >>> policy.tier.label, policy.alone, policy.memory
        ('no-namespaces', True, 536870912)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    isolation: str = Field(
        "full",
        description="the weakest tier that a worker may run on; with `,call`, each call gets a worker of its own",
    )
    strict: bool = Field(default=False, description="whether a plugin that can't be used is an error at start")
    timeout: _Seconds = Field(60.0, description="seconds for a call whose skill and tool name none")
    maximum_timeout: _Seconds = Field(
        3600.0, description="the most seconds that a skill, tool or call may ask for", validate_default=True
    )
    memory: _Memory = Field(1 << 30, description="resident bytes for a worker whose skill names none, such as `1G`")
    maximum_memory: _Memory = Field(
        4 << 30, description="the most that a skill may ask for, such as `4G`", validate_default=True
    )
    workers: int = Field(32, ge=1, le=1000, description="worker processes at once; further calls wait for their turn")
    idle_seconds: float = Field(
        300.0, ge=1, allow_inf_nan=False, description="how long a worker is kept that nobody uses"
    )
    deny: dict[str, str] = Field(default_factory=dict, description="plugins that must not load, each with the reason")
    only: list[str] | None = Field(None, description="the only plugins that may load, as kind.name; all if absent")
    conflicts: dict[str, str] = Field(default_factory=dict, description="kind.name = the distribution that wins")
    deadlines: dict[str, float] = Field(default_factory=dict, description="hook = seconds for all of its plugins")
    order: dict[str, list[str]] = Field(default_factory=dict, description="hook = plugins in the order to run in")

    @property
    def tier(self) -> Isolation:
        """The weakest tier that a worker may run on."""
        return _parts(self.isolation)[0]

    @cached_property
    def alone(self) -> bool:
        """Whether each call gets a worker of its own."""
        return _parts(self.isolation)[1]

    @field_validator("isolation")
    @classmethod
    def _known_isolation(cls, value: str) -> str:
        tier, alone = _parts(value)
        return f"{tier.label},{_CALL}" if alone else tier.label

    @field_validator("maximum_timeout", "maximum_memory")
    @classmethod
    def _not_below_the_usual(cls, value: float, info: ValidationInfo) -> float:
        name = str(info.field_name).removeprefix("maximum_")
        usual = info.data.get(name, 0)
        if value < usual:
            written = format_bytes(usual) if name == "memory" else f"{usual:g}"
            raise ValueError(f"it is less than `{name}`, which is {written}: raise it, or lower that")
        return value

    @field_validator("order", "deadlines")
    @classmethod
    def _known_hooks(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value:
            from ..hooks import HOOK_SPECS  # noqa: PLC0415  few name any, and it takes long to load

            for hook in value:
                if hook not in HOOK_SPECS:
                    raise ValueError(f"there is no hook `{hook}`{did_you_mean(hook, HOOK_SPECS)}")
        return value


def _parts(isolation: str) -> tuple[Isolation, bool]:
    """The tier of an isolation as it is written, and whether each call gets a worker of its own."""
    words = [word.strip() for word in isolation.split(",")]
    tiers = [word for word in words if word != _CALL]
    if len(tiers) > 1 or len(words) - len(tiers) > 1:
        raise ValueError(f"write a tier, `{_CALL}`, or both joined by a comma")
    try:
        tier = Isolation.parse(tiers[0]) if tiers else Isolation.FULL
    except ValueError as error:
        raise ValueError(f"{error}; `{_CALL}` besides gives each call a worker of its own") from None
    return tier, len(words) > len(tiers)
