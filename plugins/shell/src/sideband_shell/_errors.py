"""The errors of the family `shell`.

    OpFailed
    └── ShellError                            shell.failed
        ├── ShellMissing(LookupError)             shell.missing         the program does not exist
        ├── ShellDenied(PermissionError)          shell.denied          another user or a skill could have written it
        ├── ShellNotExecutable(PermissionError)   shell.not_executable  the file is not executable
        ├── ShellArguments(ValueError)            shell.arguments       the arguments exceed a system limit
        ├── ShellPlace(PermissionError)           shell.place           the place is missing or forbidden
        ├── ShellFolder(ValueError)               shell.cwd             the working directory is not a folder
        ├── ShellEnvironment(PermissionError)     shell.environment     the variable changes which code runs
        ├── ShellIsolation(PermissionError)       shell.isolation       the required isolation is unavailable
        ├── ShellStart(OSError)                   shell.start           the system did not start the program
        ├── ShellTooMany(RuntimeError)            shell.too_many        too many programs run in the background
        ├── ShellProgramUnknown(LookupError)      shell.program         no program in the background has this id
        ├── ShellTimeout(TimeoutError)            shell.timeout         the program ran too long
        └── ShellOutput(ValueError)               shell.output          the program printed too much

After all errors except the last two, the program has not run.
"""

from __future__ import annotations

from sideband.exit_codes import ExitCode
from sideband.ops import OpFailed


class ShellError(OpFailed):
    """A program was not started, or was killed because of a limit."""

    nothing_happened = True
    code = "shell.failed"


class ShellMissing(ShellError, LookupError):
    """The program does not exist in the folders of the search path."""

    code = "shell.missing"

    def __init__(self, binary: str, searched: str, skipped: str = "") -> None:
        ignored = f"; skipped because users other than root can change them: {skipped}" if skipped else ""
        super().__init__(
            f"program `{binary}` not found",
            hint=f"searched: {searched or 'no folders'}{ignored}; install the program, or use its absolute path",
        )


class ShellDenied(ShellError, PermissionError):
    """A skill or another user could have written the program."""

    code = "shell.denied"

    def __init__(self, binary: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"refused to run `{binary}`: {problem}",
            hint=hint or "install it in a folder that only you or root can write to, and use that path",
        )


class ShellNotExecutable(ShellError, PermissionError):
    """The file is not executable."""

    code = "shell.not_executable"

    def __init__(self, binary: str) -> None:
        super().__init__(
            f"`{binary}` is not an executable file", hint="name an executable file; run scripts with their interpreter"
        )


class ShellArguments(ShellError, ValueError):
    """The arguments and variables exceed a limit of the system."""

    code = "shell.arguments"

    def __init__(self, what: str, size: int, allowed: int) -> None:
        super().__init__(
            f"{what} must have at most {allowed:,} bytes, got {size:,}",
            hint="pass the data as `input`, or in a file in a place",
        )


class ShellPlace(ShellError, PermissionError):
    """The place does not exist, or is forbidden regardless of the grant."""

    code = "shell.place"

    def __init__(self, place: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"cannot use `{place}` as a place: {problem}",
            hint=hint or "name an existing folder or file, by its absolute path or relative to `SIDEBAND_HOME/files`",
        )


class ShellFolder(ShellError, ValueError):
    """The working directory is not a folder."""

    code = "shell.cwd"

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"cannot use `{folder}` as the working directory: {problem}",
            hint="name a folder in one of the places in `read` and `write`",
        )


class ShellEnvironment(ShellError, PermissionError):
    """The variable changes which code runs, so it could bypass the grant."""

    code = "shell.environment"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"cannot set the variable `{name}`: it changes which code runs",
            hint="remove the variable; use arguments or a file instead",
        )


class ShellIsolation(ShellError, PermissionError):
    """The isolation that the host requires is not available for programs."""

    code = "shell.isolation"
    exit_code = ExitCode.DENIED

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


class ShellStart(ShellError, OSError):
    """The system did not start the program."""

    code = "shell.start"

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint or "check the limits in `[plugins.shell]`, and close other programs")


class ShellTooMany(ShellError, RuntimeError):
    """Too many programs run in the background."""

    code = "shell.too_many"

    def __init__(self, setting: str, allowed: int) -> None:
        super().__init__(
            f"at most {allowed:,} programs may run in the background",
            hint=f"stop one with `shell.stop`, or raise `{setting}` in `[plugins.shell]`",
        )


class ShellProgramUnknown(ShellError, LookupError):
    """No program in the background has this id, or it belongs to another session, skill or plugin."""

    code = "shell.program"

    def __init__(self, program: str) -> None:
        super().__init__(
            f"no program in the background has the id `{program}`",
            hint="programs end with the session and with the host that started them, even if it is killed; "
            "start the program again",
        )


class ShellTimeout(ShellError, TimeoutError):
    """The program exceeded its timeout and was killed with its descendants. Its previous effects remain."""

    nothing_happened = False
    code = "shell.timeout"

    def __init__(self, binary: str, seconds: float) -> None:
        super().__init__(
            f"`{binary}` did not exit within {seconds:g} s and was killed",
            hint="raise `timeout`, or set `stream=true` to get the output until the timeout",
        )


class ShellOutput(ShellError, ValueError):
    """The program printed too much and was killed. Its previous effects remain."""

    nothing_happened = False
    code = "shell.output"

    def __init__(self, binary: str, allowed: int) -> None:
        super().__init__(
            f"output of `{binary}` exceeds the limit of {allowed:,} bytes, and the program was killed",
            hint="print less, write to a file, or raise `max_total_bytes` in `[plugins.shell]`",
        )


ERRORS = (
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
"""The errors that skills can catch by class."""
