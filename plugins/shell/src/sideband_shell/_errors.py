"""What a command can fail with.

    OpFailed
    └── ShellError                            shell.failed
        ├── ShellMissing(LookupError)             shell.missing         there is no such program
        ├── ShellDenied(PermissionError)          shell.denied          a program that others could have put there
        ├── ShellNotExecutable(PermissionError)   shell.not_executable  a file that is no program
        ├── ShellArguments(ValueError)            shell.arguments       more than the system takes
        ├── ShellPlace(PermissionError)           shell.place           a place that can't be had
        ├── ShellFolder(ValueError)               shell.cwd             a working directory that is none
        ├── ShellEnvironment(PermissionError)     shell.environment     a variable that would change what runs
        ├── ShellIsolation(PermissionError)       shell.isolation       commands can't be isolated here as is demanded
        ├── ShellStart(OSError)                   shell.start           the system did not start it
        ├── ShellTimeout(TimeoutError)            shell.timeout         it ran too long
        └── ShellOutput(ValueError)               shell.output          it printed without end

After all but the last two, nothing has run.
"""

from __future__ import annotations

from sideband.exit_codes import ExitCode
from sideband.ops import OpFailed


class ShellError(OpFailed):
    """A command was not run, or did not end well."""

    nothing_happened = True
    code = "shell.failed"


class ShellMissing(ShellError, LookupError):
    """There is no program of that name in the folders that are searched."""

    code = "shell.missing"

    def __init__(self, binary: str, searched: str, skipped: str = "") -> None:
        left_out = f"; left out, since others than root may change them: {skipped}" if skipped else ""
        super().__init__(
            f"there is no program `{binary}`",
            hint=f"searched: {searched or 'nothing'}{left_out}; install it, or give its absolute path",
        )


class ShellDenied(ShellError, PermissionError):
    """The program lies where a skill or a stranger could have put it."""

    code = "shell.denied"

    def __init__(self, binary: str, problem: str) -> None:
        super().__init__(
            f"`{binary}` is not run: {problem}", hint="install it where only you or root can write, and name it there"
        )


class ShellNotExecutable(ShellError, PermissionError):
    """What has that name is no program."""

    code = "shell.not_executable"

    def __init__(self, binary: str) -> None:
        super().__init__(
            f"`{binary}` is no program", hint="name an executable file; a script is run by its interpreter"
        )


class ShellArguments(ShellError, ValueError):
    """The arguments, the environment or the input are larger than a program can be given."""

    code = "shell.arguments"

    def __init__(self, what: str, size: int, allowed: int) -> None:
        super().__init__(
            f"{what} of {size:,} bytes is more than the {allowed:,} that a command takes",
            hint="pass it as `input`, or in a file of a place",
        )


class ShellPlace(ShellError, PermissionError):
    """A place that no command may have whatever the grant, or that is not there."""

    code = "shell.place"

    def __init__(self, place: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"`{place}` can't be a place of a command: {problem}",
            hint=hint or "name an existing folder or file, by its absolute path or relative to `HOME/files`",
        )


class ShellFolder(ShellError, ValueError):
    """The working directory lies in no place of the command, or is no folder."""

    code = "shell.cwd"

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"`{folder}` can't be the working directory: {problem}",
            hint="name a folder in one of the places in `read` and `write`",
        )


class ShellEnvironment(ShellError, PermissionError):
    """A variable that decides which code runs, and so would go around the grant."""

    code = "shell.environment"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the variable `{name}` can't be set: it changes what a command runs",
            hint="leave it out; pass what the command needs as arguments, or in a file",
        )


class ShellIsolation(ShellError, PermissionError):
    """The isolation that the host demands can't be had here for commands."""

    code = "shell.isolation"
    exit_code = ExitCode.DENIED

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


class ShellStart(ShellError, OSError):
    """The system did not start it."""

    code = "shell.start"

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint or "look at the limits in `[plugins.shell]`, and close other programs")


class ShellTimeout(ShellError, TimeoutError):
    """The command did not end in time, and was ended with all that it had started. What it did until then is done."""

    nothing_happened = False
    code = "shell.timeout"

    def __init__(self, binary: str, seconds: float) -> None:
        super().__init__(
            f"`{binary}` did not end within {seconds:g} s, and was ended",
            hint="raise `timeout`, or pass `stream=true` to be answered with what it had printed",
        )


class ShellOutput(ShellError, ValueError):
    """The command printed more than anybody could want, and was ended. What it did until then is done."""

    nothing_happened = False
    code = "shell.output"

    def __init__(self, binary: str, allowed: int) -> None:
        super().__init__(
            f"`{binary}` printed more than {allowed:,} bytes, and was ended",
            hint="let it print less, or write to a file; `max_total_bytes` in `[plugins.shell]` is the limit",
        )
