"""Conformance classes: the tests that every plugin of a kind passes.

Derive a class from that of the kind of your plugin in a module of your tests:

    class TestClock(OpFamilyConformance):
        plugin = "op.clock"
        examples = [Example("clock.now", {"zone": "UTC"})]
"""

from ._base import Conformance, tree_of
from ._commands import CommandConformance, CommandExample
from ._examples import Example
from ._failing import CheckFailed
from ._hooks import GuardConformance, HookConformance
from ._loaders import LoaderConformance
from ._ops import OpFamilyConformance
from ._overrides import OverrideInvalid
from ._providers import ProviderConformance
from ._sandboxes import SandboxConformance
from ._secret_sources import SecretSourceConformance
from ._shared_stores import SharedStoreConformance
from ._skills import SkillConformance
from ._stores import StoreConformance
from ._tools import ToolConformance, ToolSourceConformance

__all__ = [
    "CheckFailed",
    "CommandConformance",
    "CommandExample",
    "Conformance",
    "Example",
    "GuardConformance",
    "HookConformance",
    "LoaderConformance",
    "OpFamilyConformance",
    "OverrideInvalid",
    "ProviderConformance",
    "SandboxConformance",
    "SecretSourceConformance",
    "SharedStoreConformance",
    "SkillConformance",
    "StoreConformance",
    "ToolConformance",
    "ToolSourceConformance",
    "tree_of",
]
