"""What a user can choose for a session in the editor: the approval mode, the model and the level of thinking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from acp.schema import SessionConfigOptionBoolean, SessionConfigOptionSelect, SessionConfigSelectOption
from sideband.rendering import render
from sideband.settings import ThinkingLevel

from ._errors import AcpOptionUnknown
from ._modes import modes_of

if TYPE_CHECKING:
    from sideband_agent import Agent

ConfigOptions = list[SessionConfigOptionSelect | SessionConfigOptionBoolean]

MODE = "mode"
_MODEL, _THINKING = "model", "thinking"
_BY_PROVIDER = "default"


def options_of(agent: Agent) -> ConfigOptions:
    """Return the options of an agent, with their values."""
    found: ConfigOptions = []
    if (modes := modes_of(agent)) is not None:
        choices = [
            SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
            for one in modes.available_modes
        ]
        found.append(
            SessionConfigOptionSelect(
                type="select",
                id=MODE,
                name="Approval mode",
                description="When you are asked about changes",
                category="mode",
                current_value=modes.current_mode_id,
                options=choices,
            )
        )
    models = {name: render(name) for name in _models(agent)}
    found.append(
        SessionConfigOptionSelect(
            type="select",
            id=_MODEL,
            name="Model",
            description="The model of this session: the configured one, or one of its fallbacks",
            category="model",
            current_value=agent.model,
            options=_select(models),
        )
    )
    levels = {one: one.capitalize() for one in get_args(ThinkingLevel)}
    level = agent.thinking
    found.append(
        SessionConfigOptionSelect(
            type="select",
            id=_THINKING,
            name="Thinking",
            description="How long the model thinks before it answers",
            category="thought_level",
            current_value=level or _BY_PROVIDER,
            options=_select(levels if level else {_BY_PROVIDER: "As the provider decides", **levels}),
        )
    )
    return found


async def select_option(agent: Agent, option: str, value: object) -> None:
    """Choose a value of the model or of the level of thinking.

    Raises:
        AcpOptionUnknown: if there is no such option, or it has no such value.
        SidebandError: if it cannot be chosen now.
    """
    if option == _MODEL and value in _models(agent):
        await agent.select_model(str(value))
    elif option == _THINKING and value in get_args(ThinkingLevel):
        await agent.select_thinking(str(value))
    elif option != _THINKING or value != _BY_PROVIDER or agent.thinking is not None:
        raise AcpOptionUnknown(option, value)


def _models(agent: Agent) -> list[str]:
    settings = agent.settings
    return [*dict.fromkeys(filter(None, (agent.model, settings.model, *settings.fallbacks)))]


def _select(choices: Mapping[str, str]) -> list[SessionConfigSelectOption]:
    return [SessionConfigSelectOption(value=value, name=name) for value, name in choices.items()]
