"""Errors of the command line.

SidebandError
├── AgentMissing(ImportError)          agent.missing     the command needs the package of the agent
├── ModelUnconfigured(LookupError)     agent.model       no model is named anywhere
├── ChatCommandUnknown(LookupError)    chat.command      the chat has no such chat command
├── UndoImpossible(RuntimeError)       undo.impossible   there is no step that would take anything of it back
└── UndoDeclined(PermissionError)      undo.declined     nobody agreed to it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sideband import SidebandError
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

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


class AgentMissing(SidebandError, ImportError):
    """The command needs the agent, and its package is not installed. All other commands work without it.

    Args:
        command: the command.
    """

    code = "agent.missing"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, command: str) -> None:
        super().__init__(
            f"`sideband {command}` needs the agent, which is not installed",
            hint="install it with `pip install sideband-agent`",
        )


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


class ChatCommandUnknown(SidebandError, LookupError):
    """There is no such chat command; the message names the closest one.

    Args:
        name: what follows the slash.
        known: the names of the chat commands that the chat has.
    """

    code = "chat.command"
    exit_code = ExitCode.USAGE

    def __init__(self, name: str, known: Iterable[str]) -> None:
        suggestion = did_you_mean(f"/{name}", [f"/{one}" for one in known])
        super().__init__(
            f"there is no command `/{name}`{suggestion}",
            hint="`/help` lists them; to say this to the model, begin the message with a space",
        )


class UndoImpossible(SidebandError, RuntimeError):
    """Nothing of the effect can be taken back; the message says why. Nothing was changed."""

    code = "undo.impossible"

    def __init__(self, effect: str, remains: Iterable[str]) -> None:
        why = "; ".join(remains) or "its op plans no step for it"
        super().__init__(
            f"nothing of {effect} can be taken back: {why}",
            hint=f"`sideband audit why {effect}` shows what it did; put it right by hand, or with other effects",
        )


class UndoDeclined(SidebandError, PermissionError):
    """The person said no, or there was nobody to ask. Nothing was changed."""

    code = "undo.declined"
    exit_code = ExitCode.DENIED

    def __init__(self, effect: str, *, asked: bool) -> None:
        why = "that was not agreed to" if asked else "nobody can be asked"
        hint = "" if asked else "look at the plan with --dry-run, then agree to it with --yes"
        super().__init__(f"{effect} was not taken back: {why}", hint=hint or "nothing was changed")
