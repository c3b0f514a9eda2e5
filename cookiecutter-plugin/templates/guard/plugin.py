"""The guard: it denies effects, or asks the user about them, by the names of their ops."""

from __future__ import annotations

from fnmatch import fnmatchcase

from pydantic import BaseModel, ConfigDict
from sideband import hookimpl
from sideband.hooks import Ask, Deny, OpCall
from sideband.plugins import PluginContext
from sideband.rendering import quoted

__all__ = ["Config", "sideband_guards"]


class Config(BaseModel):
    """The table `[plugins.{{ cookiecutter.__entry }}]`."""

    model_config = ConfigDict(extra="forbid")

    deny: tuple[str, ...] = ("shell.*",)
    ask: tuple[str, ...] = ("files.delete", "http.delete")


class OpRules:
    """Decides about each effect. Each agent has an instance of its own."""

    @hookimpl
    async def op_call(self, event: OpCall, ctx: PluginContext) -> Deny | Ask | None:
        """Deny an effect, ask about it, or leave it to the other guards."""
        if any(fnmatchcase(event.op, pattern) for pattern in ctx.config.deny):
            return Deny(
                f"{quoted(event.op)} is denied by the configuration",
                hint="remove it from `deny` under `[plugins.{{ cookiecutter.__entry }}]`",
            )
        if any(fnmatchcase(event.op, pattern) for pattern in ctx.config.ask):
            return Ask(f"run {quoted(event.op)}?")
        return None


def sideband_guards() -> list[type[OpRules]]:
    """Register the guard."""
    return [OpRules]
