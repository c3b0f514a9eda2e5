"""Build all sections in order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

from sideband.hooks import Section, Sections

from ._config import Config, SectionName
from ._environment_section import footer, platform
from ._instructions import append, documentation, identity
from ._knowledge import find_documents
from ._knowledge_section import knowledge_section
from ._memory import memory_section
from ._project_files import project_instructions
from ._prompt_levels import find_levels, own_folder
from ._skills_section import skills


def build_sections(event: Sections, config: Config, home: Path, today: date) -> list[Section]:
    """Build the enabled sections that are not empty. The same files and arguments give the same bytes.

    Args:
        event: the session, its tools and its skills.
        config: the settings.
        home: the host's state folder.
        today: the date in the prompt.
    """
    levels = find_levels(home, config.profile, event.project)
    own = own_folder(home, config.profile)
    builders: dict[SectionName, Callable[[], str]] = {
        "identity": lambda: identity(levels, config.file_limit),
        "documentation": lambda: documentation(config),
        "append": lambda: append(levels, config.file_limit, _project(event, config, home)),
        "knowledge": lambda: knowledge_section(
            find_documents(levels), event.tools, limit=config.knowledge_limit, file_limit=config.file_limit
        ),
        "memory": lambda: memory_section(own, "memory", config.memory_limit),
        "user": lambda: memory_section(own, "user", config.user_limit),
        "skills": lambda: skills(event.skills, event.tools, config.skills_limit, event.text),
        "platform": lambda: platform(event.channel, config.platforms),
        "footer": lambda: footer(event, home, config.profile, today),
    }
    texts = {name: build() for name, build in builders.items() if config.has(name)}
    return [Section(name, text) for name, text in texts.items() if text]


def _project(event: Sections, config: Config, home: Path) -> str:
    limits = {"limit": config.instructions_limit, "file_limit": config.file_limit}
    return project_instructions(event.folder, event.project, home, channel=event.channel, **limits)
