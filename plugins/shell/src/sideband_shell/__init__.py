"""The op family `shell` of sideband: programs with arguments, without a shell, in the isolation of skills.

Call the ops by name (`shell.run`). This package exports its errors, models and settings.
"""

from ._background_models import (
    ShellOutputParams,
    ShellOutputPart,
    ShellProgramOutput,
    ShellProgramState,
    ShellStarted,
    ShellStartParams,
    ShellStopParams,
)
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
    ShellProgramUnknown,
    ShellStart,
    ShellTimeout,
    ShellTooMany,
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
    "ShellOutputParams",
    "ShellOutputPart",
    "ShellPlace",
    "ShellProgramOutput",
    "ShellProgramState",
    "ShellProgramUnknown",
    "ShellRunParams",
    "ShellRunResult",
    "ShellScope",
    "ShellStart",
    "ShellStartParams",
    "ShellStarted",
    "ShellStopParams",
    "ShellTimeout",
    "ShellTooMany",
    "__version__",
]
