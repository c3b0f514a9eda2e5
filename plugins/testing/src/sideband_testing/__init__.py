"""Fixtures and conformance tests for plugins and skills of sideband.

pytest loads the fixtures by itself. This package has their types. Names are imported on first use, so that nothing of
sideband is imported in a test session that does not use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._clock import FrozenClock
    from ._credentials import Credentials
    from ._errors import ArgumentInvalid, KitError
    from ._hosts import HostFactory
    from ._made_plugins import MadePlugin, PluginMaker
    from ._provider_client import ProviderClient
    from ._recorder import HookCall, Recorder
    from ._scripted import ScriptedMaker, ScriptedPlugin
    from ._servers import HttpExchange, HttpRequest, HttpServer
    from ._workers import SkillWorker
    from .conformance import (
        CheckFailed,
        CommandConformance,
        CommandExample,
        Conformance,
        Example,
        GuardConformance,
        HookConformance,
        LoaderConformance,
        OpFamilyConformance,
        OverrideInvalid,
        ProviderConformance,
        SandboxConformance,
        SecretSourceConformance,
        SharedStoreConformance,
        SkillConformance,
        StoreConformance,
        ToolConformance,
        ToolSourceConformance,
    )

__all__ = [
    "ArgumentInvalid",
    "CheckFailed",
    "CommandConformance",
    "CommandExample",
    "Conformance",
    "Credentials",
    "Example",
    "FrozenClock",
    "GuardConformance",
    "HookCall",
    "HookConformance",
    "HostFactory",
    "HttpExchange",
    "HttpRequest",
    "HttpServer",
    "KitError",
    "LoaderConformance",
    "MadePlugin",
    "OpFamilyConformance",
    "OverrideInvalid",
    "PluginMaker",
    "ProviderClient",
    "ProviderConformance",
    "Recorder",
    "SandboxConformance",
    "ScriptedMaker",
    "ScriptedPlugin",
    "SecretSourceConformance",
    "SharedStoreConformance",
    "SkillConformance",
    "SkillWorker",
    "StoreConformance",
    "ToolConformance",
    "ToolSourceConformance",
    "__version__",
]

_MODULES = {
    "CheckFailed": ".conformance",
    "CommandConformance": ".conformance",
    "CommandExample": ".conformance",
    "Conformance": ".conformance",
    "Example": ".conformance",
    "GuardConformance": ".conformance",
    "HookConformance": ".conformance",
    "LoaderConformance": ".conformance",
    "OpFamilyConformance": ".conformance",
    "OverrideInvalid": ".conformance",
    "ProviderConformance": ".conformance",
    "SandboxConformance": ".conformance",
    "SecretSourceConformance": ".conformance",
    "SkillConformance": ".conformance",
    "SharedStoreConformance": ".conformance",
    "StoreConformance": ".conformance",
    "ToolConformance": ".conformance",
    "ToolSourceConformance": ".conformance",
    "ArgumentInvalid": "._errors",
    "FrozenClock": "._clock",
    "HookCall": "._recorder",
    "HostFactory": "._hosts",
    "HttpExchange": "._servers",
    "HttpRequest": "._servers",
    "HttpServer": "._servers",
    "KitError": "._errors",
    "MadePlugin": "._made_plugins",
    "Credentials": "._credentials",
    "ProviderClient": "._provider_client",
    "PluginMaker": "._made_plugins",
    "Recorder": "._recorder",
    "ScriptedMaker": "._scripted",
    "ScriptedPlugin": "._scripted",
    "SkillWorker": "._workers",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_MODULES[name], __name__), name))


def __dir__() -> list[str]:
    return __all__
