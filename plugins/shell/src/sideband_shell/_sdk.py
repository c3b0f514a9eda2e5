"""The function that replaces the generated one in the SDK of skills. Standard library only."""

# mypy: disable-error-code="import-not-found, misc"
# The types are generated with the functions, so they exist only beside them: `sideband sdk stubs` writes both.

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband.skill import dispatch

if TYPE_CHECKING:
    from typing import Unpack

    from sideband_sdk.shell import RunOptions, ShellRunResult

__all__ = ["run"]


async def run(binary: str, *arguments: str, **options: Unpack[RunOptions]) -> ShellRunResult:
    """Run a program: ``await shell.run("git", "status", "--short", cwd="/srv/repo")``.

    Accepts the parameters of the op ``shell.run``. Pass the arguments by position or as ``args=[…]``.
    """
    if arguments and "args" in options:
        raise TypeError("pass the arguments by position or as `args`, not both")
    passed = {"args": list(arguments)} if arguments else {}
    result: ShellRunResult = await dispatch("shell.run", {**options, **passed, "binary": binary})
    return result
