"""Configuration: the tables of `sideband.toml`, the source of each value, and trust in project files."""

from ..state import default_home
from ._agent import AgentSettings, BudgetSettings, CompactionSettings
from ._byte_counts import format_bytes, parse_bytes
from ._policy import Policy
from ._settings import (
    COMMAND_LINE,
    LoadedSettings,
    Settings,
    load_settings,
    merge,
    setting,
    trust_project,
    trusted_project,
)
from ._skill_folders import SkillFolders, SkillSettings

__all__ = [
    "COMMAND_LINE",
    "AgentSettings",
    "BudgetSettings",
    "CompactionSettings",
    "LoadedSettings",
    "Policy",
    "Settings",
    "SkillFolders",
    "SkillSettings",
    "default_home",
    "format_bytes",
    "load_settings",
    "merge",
    "parse_bytes",
    "setting",
    "trust_project",
    "trusted_project",
]
