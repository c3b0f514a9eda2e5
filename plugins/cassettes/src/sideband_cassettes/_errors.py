"""Errors of cassettes.

OpError
└── CassetteDivergence(LookupError)           cassette.divergence
SidebandError
└── CassetteInvalid(ValueError)               cassette.invalid
"""

from __future__ import annotations

from pathlib import Path

from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.ops import OpError
from sideband.rendering import render


class CassetteDivergence(OpError, LookupError):
    """A replay requested another effect than was recorded, or not all of them. The call or run ends with it.

    Attributes:
        path: the cassette.
        ordinal: the number of the effect among those with equal parameters; 0 if it was not requested.
        diff: what differs from the most similar recorded effect, as lines that begin with ``-`` or ``+``.
    """

    code = "cassette.divergence"
    nothing_happened = True
    details = ("ordinal", "diff")

    def __init__(self, path: Path, op: str, problem: str, *, ordinal: int = 0, diff: str = "") -> None:
        # Strangers may have written the file, and pytest prints the message as it is.
        problem, diff = render(problem), render(diff, prose=True)
        super().__init__(
            f"the replay of {path.name} stopped: {problem}" + (f"\n{diff}" if diff else ""),
            hint=f"correct what has changed, or record it again: `sideband record {path} COMMAND …`",
            op=op,
        )
        self.path = path
        self.ordinal = ordinal
        self.diff = diff


class CassetteInvalid(SidebandError, ValueError):
    """A file is not a cassette that can be replayed.

    Attributes:
        path: the file.
        line: the line with the problem, from 1; 0 if it concerns the whole file.
    """

    code = "cassette.invalid"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, path: Path, problem: str, *, line: int = 0, hint: str = "") -> None:
        problem = render(problem)  # as above
        where = f"{path}, line {line}" if line else f"{path}"
        super().__init__(
            f"{where}: {problem}",
            hint=hint or f"restore the file, or record it again: `sideband record {path} COMMAND …`",
        )
        self.path = path
        self.line = line
