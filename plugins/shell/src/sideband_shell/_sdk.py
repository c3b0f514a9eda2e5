"""The function that replaces the generated one in the SDK of skills. Standard library only."""

from typing import Any

from sideband.skill import dispatch

__all__ = ["run"]


async def run(binary: str, *args: str, **options: Any) -> Any:
    """Run a program: ``await shell.run("git", "status", "--short", cwd="/srv/repo")``.

    Accepts the parameters of the op ``shell.run``. Pass the arguments by position or as ``args=[…]``.
    """
    if args and "args" in options:
        raise TypeError("pass the arguments by position or as `args`, not both")
    params = {**options, "binary": binary}
    if args:
        params["args"] = list(args)
    return await dispatch("shell.run", params)
