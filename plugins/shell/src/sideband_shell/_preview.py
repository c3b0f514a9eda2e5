"""The preview of the op."""

from __future__ import annotations

import shlex

from sideband.ops import OpContext
from sideband.rendering import quoted, render

from ._models import ProgramParams
from ._places import PRIVATE
from ._program_request import may_run_others, may_use_sockets, resolve_program, seconds_of

_VERBS = {"read": "may read", "write": "may change", "execute": "may change and execute files in"}


async def preview_run(params: ProgramParams, ctx: OpContext) -> str:
    """Describe which program would run."""
    program, places = await resolve_program(params, ctx)
    words = [f"run {quoted(shlex.join([str(program.path), *params.args]))}"]
    words.append("in a temporary folder" if places.folder == PRIVATE else f"in {quoted(str(places.folder))}")
    for mode, verb in _VERBS.items():
        paths = [quoted(str(path)) for path, its in places.paths.items() if its == mode]
        if paths:
            words.append(f"it {verb} {', '.join(paths)}")
    if may_run_others(params, ctx):
        words.append("it can run any other program, in the same isolation")
    words.append("with network access" if params.network else "without network access")
    if places.paths and may_use_sockets(params, ctx):
        words.append("it may connect to services that listen in these places")
    if params.env:
        words.append(f"it sets {render(', '.join(sorted(params.env)))}")
    if params.input is not None:
        words.append(f"it reads {len(params.input_bytes or b''):,} bytes of input")
    words.append(f"timeout {seconds_of(params, ctx.config):g} s")
    return "; ".join(words)
