"""Starts one program after all checks of its request."""

from __future__ import annotations

from sideband.ops import OpContext
from sideband.workers import IsolationUnavailable, ProgramProcess, WorkerStartFailed

from ._errors import ShellIsolation, ShellStart
from ._models import ProgramParams
from ._program_request import check_egress, check_size, program_request, resolve_program
from ._variables import refuse_variables


async def launch_program(params: ProgramParams, ctx: OpContext) -> ProgramProcess:
    """Check a request, and start its program. The caller must close it.

    Raises:
        ShellError: if it was not started.
    """
    refuse_variables(params.env)
    found, places = await resolve_program(params, ctx)
    check_egress(params, ctx)
    check_size(found, params)
    try:
        return await ctx.launch(program_request(params, found, places, ctx))
    except IsolationUnavailable as error:
        raise ShellIsolation(error.message, error.hint) from error
    except WorkerStartFailed as error:
        raise ShellStart(error.message, error.hint) from error
