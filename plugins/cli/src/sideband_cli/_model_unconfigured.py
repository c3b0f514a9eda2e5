"""What is said where nobody has named a model: which ones there are, or the quickest ways to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sideband import SidebandError
from sideband.exit_codes import ExitCode

if TYPE_CHECKING:
    from sideband import Host

__all__ = ["ModelUnconfigured", "unconfigured"]

_PATIENCE = 5.0
_MOST_SHOWN = 8
_WAYS = (
    "1. a key: export OPENAI_API_KEY=… or ANTHROPIC_API_KEY=… (or `sideband secrets set`),",
    "   and the model: --model openai:NAME or --model anthropic:NAME",
    "2. a server on this machine, such as Ollama, which is found without configuration:",
    "   `sideband models list` shows its models",
    "3. no model, but turns that you write: --model scripted:NAME, see sideband-scripted",
)
_KEEP = ('To keep one: `model = "provider:name"` under `[agent]` in sideband.toml, or SIDEBAND_AGENT__MODEL.',)
_WITHOUT = ("Skills need no model: `sideband call SKILL.TOOL` works without one.",)


class ModelUnconfigured(SidebandError, LookupError):
    """Nobody has said which model to use.

    Args:
        models: those that could be used.
    """

    code = "agent.model"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, models: Sequence[str] = ()) -> None:
        shown = [f"  --model {name}" for name in models[:_MOST_SHOWN]]
        more = [f"  … and {len(models) - len(shown)} more: `sideband models list`"] if len(models) > len(shown) else []
        found = ["name one that can be used now:", *shown, *more]
        ways = ["the three quickest ways to one:", *_WAYS]
        super().__init__("no model is configured", hint="\n".join([*(found if models else ways), *_KEEP, *_WITHOUT]))


async def unconfigured(host: Host) -> ModelUnconfigured:
    """The error, with the models that answer within a few seconds."""
    from anyio import move_on_after

    names: list[str] = []
    with move_on_after(_PATIENCE):
        try:
            names = [model["name"] for model in (await host.op("llm.models", {}))["models"]]
        except SidebandError:
            names = []  # the ways to a model are all that helps then
    return ModelUnconfigured(names)
