"""What the op would do, as a sentence."""

from __future__ import annotations

import shlex

import anyio.to_thread
from sideband.ops import OpContext

from ._models import ShellRunParams
from ._places import PRIVATE
from ._program_request import resolve_program, seconds_of


async def preview_run(params: ShellRunParams, ctx: OpContext) -> str:
    """What `shell.run` would do."""
    program, grounds = await anyio.to_thread.run_sync(resolve_program, params, ctx.config, ctx.home)
    words = [f"run `{shlex.join([str(program.path), *params.args])}`"]
    words.append("in a folder of its own" if grounds.folder == PRIVATE else f"in `{grounds.folder}`")
    for mode, verb in (("read", "may read"), ("write", "may change")):
        paths = [f"`{path}`" for path, its in grounds.paths.items() if its == mode]
        if paths:
            words.append(f"it {verb} {', '.join(paths)}")
    words.append("with the network" if params.network else "without network")
    if params.env:
        words.append(f"sets {', '.join(sorted(params.env))}")
    if params.input is not None:
        words.append(f"gets {len(params.input_bytes or b''):,} bytes of input")
    words.append(f"ends after {seconds_of(params, ctx.config):g} s at the latest")
    return "; ".join(words)
