"""Configuration: the tables of `sideband.toml`, the source of each value, and trust in project files.

Names are imported on first use, to keep start-up fast.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from ..state import default_home
    from ._agent import AgentSettings, BudgetSettings, CompactionSettings, ThinkingLevel
    from ._byte_counts import format_bytes, parse_bytes
    from ._dist import DistPackage, DistSettings
    from ._plugin_policy import known_plugin_policy
    from ._policy import Policy
    from ._settings import (
        COMMAND_LINE,
        LoadedSettings,
        Settings,
        check_settings,
        load_settings,
        merge,
        setting,
    )
    from ._skill_folders import SkillFolders, SkillSettings
    from ._tools import ToolSettings
    from ._trust import distrust_plugins, trust_plugins, trust_project, trusted_project

__all__ = [
    "COMMAND_LINE",
    "AgentSettings",
    "BudgetSettings",
    "CompactionSettings",
    "DistPackage",
    "DistSettings",
    "LoadedSettings",
    "Policy",
    "Settings",
    "SkillFolders",
    "SkillSettings",
    "ThinkingLevel",
    "ToolSettings",
    "check_settings",
    "default_home",
    "distrust_plugins",
    "format_bytes",
    "known_plugin_policy",
    "load_settings",
    "merge",
    "parse_bytes",
    "setting",
    "trust_plugins",
    "trust_project",
    "trusted_project",
]

__getattr__, __dir__ = lazy(
    __name__,
    "._plugin_policy",
    "..state",
    "._byte_counts",
    "._agent",
    "._policy",
    "._skill_folders",
    "._tools",
    "._dist",
    "._trust",
    "._settings",
)
