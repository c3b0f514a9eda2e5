"""Errors of the command line.

SidebandError
├── AgentMissing(ImportError)          agent.missing     the command requires the agent package
├── ModelUnconfigured(LookupError)     agent.model       no model is configured
├── ModelUnknown(LookupError)          model.unknown     no provider lists the model
├── ChatCommandUnknown(LookupError)    chat.command      unknown chat command
├── KitMissing(ImportError)            kit.missing       the testing kit is not installed
├── SkillTestsUnread(PermissionError)  tests.unread      the tests of a named skill run only with --yes
├── ApprovalUnconfirmed(PermissionError) approval.unconfirmed  the grant of an approval was not confirmed
├── DeletionUnconfirmed(PermissionError) sessions.unconfirmed  the deletion of sessions was not confirmed
├── SetupImpossible(RuntimeError)      init.terminal     the setup cannot ask its questions without a terminal
├── KeyRefused(PermissionError)        auth.refused      a service refused a key
├── UndoImpossible(RuntimeError)       undo.impossible   no part of the effect can be undone
└── UndoDeclined(PermissionError)      undo.declined     the undo was not confirmed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sideband import SidebandError
from sideband.exit_codes import ExitCode
from sideband.suggestions import closest, did_you_mean

_MAX_MODELS = 8
_OPTIONS = (
    "1. an API key: export OPENAI_API_KEY=… or ANTHROPIC_API_KEY=… (or `sideband secrets set`),",
    "   with --model openai:NAME or --model anthropic:NAME",
    "2. a local server, such as Ollama, which is detected without configuration:",
    "   `sideband models list` shows its models",
    "3. scripted turns without a model: --model scripted:NAME, see sideband-scripted",
)
_PERMANENT = ("To make it permanent, run `sideband init`, or `sideband config set agent.model provider:name`.",)
_WITHOUT = ("Skills do not need a model: run `sideband call SKILL.TOOL`.",)


class ApprovalUnconfirmed(SidebandError, PermissionError):
    """An approval that creates a grant was not confirmed. Nothing was approved.

    Args:
        asked: whether the user was asked.
    """

    code = "approval.unconfirmed"
    exit_code = ExitCode.DENIED

    def __init__(self, *, asked: bool) -> None:
        problem = "the grant was not confirmed" if asked else "the grant cannot be confirmed without a terminal"
        super().__init__(
            f"{problem}; nothing was approved",
            hint="approve it once without --session and --always, or add --yes if the capabilities are right",
        )


class DeletionUnconfirmed(SidebandError, PermissionError):
    """The deletion of sessions was not confirmed. Nothing was deleted.

    Args:
        asked: whether the user was asked.
    """

    code = "sessions.unconfirmed"
    exit_code = ExitCode.DENIED

    def __init__(self, *, asked: bool) -> None:
        problem = "the deletion was not confirmed" if asked else "the deletion cannot be confirmed without a terminal"
        super().__init__(f"{problem}; nothing was deleted", hint="add --yes if these sessions are not needed any more")


class SetupImpossible(SidebandError, RuntimeError):
    """The setup cannot ask its questions without a terminal. Nothing was changed.

    Args:
        file: the settings file of the user.
        model: a model that was found, or an empty text.
    """

    code = "init.terminal"
    exit_code = ExitCode.USAGE

    def __init__(self, file: object, model: str) -> None:
        lines = [
            "add --yes to accept all defaults, or write these settings to the file yourself:",
            "  [agent]",
            f'  model = "{model or "PROVIDER:MODEL"}"' + ("  # found on this machine" if model else ""),
            "  [skills]",
            "  folders = []  # besides ~/.sideband/skills",
            "Store a key with `sideband auth login PROVIDER`, which also reads it from standard input.",
        ]
        super().__init__(f"without a terminal, no questions about {file} can be asked", hint="\n".join(lines))


class KeyRefused(SidebandError, PermissionError):
    """A service refused a key. The stored key is as before.

    Args:
        service: the service.
        problem: what the service said.
    """

    code = "auth.refused"
    exit_code = ExitCode.DENIED

    def __init__(self, service: str, problem: str) -> None:
        super().__init__(f"{service} refused the key: {problem}", hint="check the key; nothing was stored")


class KitMissing(SidebandError, ImportError):
    """The command requires the testing kit, which is not installed.

    Args:
        modules: the modules that are missing.
    """

    code = "kit.missing"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, modules: Sequence[str]) -> None:
        missing = " and ".join(f"`{one}`" for one in modules)
        super().__init__(
            f"the tests of skills and plugins need the testing kit, but {missing} cannot be found",
            hint="pip install sideband-testing",
        )


class SkillTestsUnread(SidebandError, PermissionError):
    """The tests of a skill were not run: they have the user's rights, and the user may not have read them.

    Args:
        skill: the name of the skill.
        tests: the folder of its tests.
    """

    code = "tests.unread"
    exit_code = ExitCode.DENIED

    def __init__(self, skill: str, tests: object) -> None:
        super().__init__(
            f"the tests of `{skill}` were not run: unlike its tools, they run with your rights, outside of a worker",
            hint=f"read them in {tests}, and add --yes before `{skill}`",
        )


class AgentMissing(SidebandError, ImportError):
    """The command requires the agent, which is not installed. All other commands work without it.

    Args:
        command: the name of the command.
    """

    code = "agent.missing"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, command: str) -> None:
        super().__init__(
            f"`sideband {command}` requires the agent, which is not installed",
            hint="run `pip install sideband-agent`",
        )


class ModelUnconfigured(SidebandError, LookupError):
    """No model is configured.

    Args:
        models: the available models.
    """

    code = "agent.model"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, models: Sequence[str] = ()) -> None:
        shown = [f"  --model {name}" for name in models[:_MAX_MODELS]]
        more = [f"  … and {len(models) - len(shown)} more: `sideband models list`"] if len(models) > len(shown) else []
        found = ["choose an available model:", *shown, *more]
        options = ["choose one of the following:", *_OPTIONS]
        hint = "\n".join([*(found if models else options), *_PERMANENT, *_WITHOUT])
        super().__init__("no model is configured", hint=hint)


class ModelUnknown(SidebandError, LookupError):
    """The model that was typed is unknown or ambiguous, according to the providers. No model was changed.

    Args:
        name: the name that was typed.
        known: the names of the listed models.
        matching: the models that have the name without their provider, if there are several.
        unavailable: the providers whose models are unknown.
    """

    code = "model.unknown"
    exit_code = ExitCode.CONFIGURATION

    def __init__(
        self, name: str, known: Sequence[str], *, matching: Sequence[str] = (), unavailable: Sequence[str] = ()
    ) -> None:
        self.known = tuple(known)
        if matching:
            problem = f"ambiguous model `{name}`: it is one of {', '.join(matching[:_MAX_MODELS])}"
        else:
            bare = {one.partition(":")[2]: one for one in known}
            close = closest(name, known) or bare.get(closest(name, bare) or "")
            problem = f"unknown model `{name}`" + (f" (did you mean `{close}`?)" if close else "")
        models = f"one of {', '.join(known[:_MAX_MODELS])}" if known else "provider:model"
        models += f" ({len(known) - _MAX_MODELS} more: `sideband models list`)" if len(known) > _MAX_MODELS else ""
        models += f"; models of {', '.join(unavailable)} are unavailable" if unavailable else ""
        super().__init__(
            problem,
            hint=f"use {models}; to use a model that its provider does not list, name it in `[plugins.llm.aliases]`",
        )


class ChatCommandUnknown(SidebandError, LookupError):
    """The chat command is unknown. The message suggests the closest name.

    Args:
        name: the name, without the slash.
        known: the names of the available chat commands.
    """

    code = "chat.command"
    exit_code = ExitCode.USAGE

    def __init__(self, name: str, known: Iterable[str]) -> None:
        suggestion = did_you_mean(f"/{name}", [f"/{one}" for one in known])
        super().__init__(
            f"unknown command `/{name}`{suggestion}",
            hint="`/help` lists all commands; to send this as a message, put a space before the slash",
        )


class UndoImpossible(SidebandError, RuntimeError):
    """No part of the effect can be undone. The message gives the reason. Nothing was changed."""

    code = "undo.impossible"

    def __init__(self, effect: str, remains: Iterable[str]) -> None:
        reason = "; ".join(remains) or "its op does not support undo"
        named = "EFFECT" if " " in effect else effect  # a session or a run has several
        super().__init__(
            f"{effect} cannot be undone: {reason}",
            hint=f"inspect it with `sideband audit why {named}`, then revert it manually",
        )


class UndoDeclined(SidebandError, PermissionError):
    """The user declined, or confirmation was impossible without a terminal. Nothing was changed."""

    code = "undo.declined"
    exit_code = ExitCode.DENIED

    def __init__(self, effect: str, *, asked: bool) -> None:
        reason = "declined by the user" if asked else "confirmation requires a terminal"
        hint = "nothing was changed" if asked else "review the plan with --dry-run, then confirm it with --yes"
        super().__init__(f"{effect} was not undone: {reason}", hint=hint)
