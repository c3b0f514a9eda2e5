"""A provider that plays scripted turns instead of calling a model."""

from ._errors import ScriptEnded, ScriptInvalid, ScriptMissing, ScriptUnknown
from ._scripted import Scripted
from ._turns import Broken, Hang, ScriptedTurn, Turn
from ._version import __version__

__all__ = [
    "Broken",
    "Hang",
    "ScriptEnded",
    "ScriptInvalid",
    "ScriptMissing",
    "ScriptUnknown",
    "Scripted",
    "ScriptedTurn",
    "Turn",
    "__version__",
]
