"""The op family `shell` of sideband: programs with arguments, without a shell, in the isolation of skills.

Call the op by name (`shell.run`). This package exports its errors, models and settings.
"""

from ._config import Config
from ._errors import (
    ShellArguments,
    ShellDenied,
    ShellEnvironment,
    ShellError,
    ShellFolder,
    ShellIsolation,
    ShellMissing,
    ShellNotExecutable,
    ShellOutput,
    ShellPlace,
    ShellStart,
    ShellTimeout,
)
from ._models import ShellRunParams, ShellRunResult
from ._scope import ShellScope
from ._version import __version__

__all__ = [
    "Config",
    "ShellArguments",
    "ShellDenied",
    "ShellEnvironment",
    "ShellError",
    "ShellFolder",
    "ShellIsolation",
    "ShellMissing",
    "ShellNotExecutable",
    "ShellOutput",
    "ShellPlace",
    "ShellRunParams",
    "ShellRunResult",
    "ShellScope",
    "ShellStart",
    "ShellTimeout",
    "__version__",
]
