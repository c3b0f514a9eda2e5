"""All hooks, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from . import _specs, _specs_observed
from ._spec import HookSpec, specs_of

__all__ = ["HOOK_SPECS", "SPEC_MODULES"]

SPEC_MODULES: Final = (_specs, _specs_observed)
HOOK_SPECS: Final[Mapping[str, HookSpec]] = MappingProxyType(
    {name: spec for module in SPEC_MODULES for name, spec in specs_of(module).items()}
)
