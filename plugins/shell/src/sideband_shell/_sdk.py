"""What skills get besides the generated functions. Standard library only."""

from typing import Any

from sideband.skill import dispatch

__all__ = ["run"]


async def run(binary: str, *args: str, **options: Any) -> Any:
    """Run a program: ``await shell.run("git", "status", "--short", cwd="/srv/repo")``.

    Takes what the op ``shell.run`` takes, with the arguments by position; ``args=[…]`` is good too.
    """
    if args and "args" in options:
        raise TypeError("give the arguments by position or as `args`, not both")
    params = {**options, "binary": binary}
    if args:
        params["args"] = list(args)
    return await dispatch("shell.run", params)
