"""Run the handler of an op with a timeout, and convert its outcome to a result or a typed error."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import anyio
from anyio import CancelScope, get_cancelled_exc_class
from anyio.lowlevel import checkpoint

from ..contexts._progress import current_writer
from ..hooks._dispatch import cancelled_itself
from ..ops import OpCancelled, OpError, OpTimeout
from ._context import DispatchContext
from ._dispatch import Dispatch
from ._progress import unobserved


async def run_handler(
    dispatch: Dispatch, context: DispatchContext, limit: float, *, has_deadline: bool
) -> tuple[Any, OpError | None]:
    """Run the handler of a dispatch.

    Args:
        dispatch: the dispatch, after look-up and validation.
        context: the context for the handler.
        limit: the time until its deadline in seconds, for the message.
        has_deadline: whether to cancel the handler at that deadline. Otherwise the creator of the call does it.

    Returns:
        The handler's result and ``None``, or ``None`` and the error. A cancellation from outside is raised.
    """
    if not has_deadline:
        return await _run(dispatch, context, limit, None)
    with CancelScope(deadline=context.deadline) as scope:
        return await _run(dispatch, context, limit, scope)
    return None, OpTimeout(dispatch.op, limit)


async def _run(
    dispatch: Dispatch, context: DispatchContext, limit: float, scope: CancelScope | None
) -> tuple[Any, OpError | None]:
    handler = dispatch.recorded_handler or dispatch.found.spec.handler
    try:
        if dispatch.call.progress is None and current_writer.get() is None:
            result = await handler(dispatch.params, context)
        else:
            with _writing(dispatch):
                result = await handler(dispatch.params, context)
        if context.parts is not None:
            await context.emit_rest()
    except Exception as raised:  # noqa: BLE001  whatever a handler raises becomes one typed error
        error = dispatch.error(raised)
    except get_cancelled_exc_class():
        if not cancelled_itself():
            raise
        error = OpCancelled(dispatch.op, "its handler cancelled itself")
    except (SystemExit, GeneratorExit) as raised:
        # A plugin must not exit the host.
        error = dispatch.error(RuntimeError(f"it raised {type(raised).__name__}"))
    except BaseExceptionGroup as group:
        _, staying = group.split((SystemExit, GeneratorExit))
        cancelled, others = staying.split(get_cancelled_exc_class()) if staying else (None, None)
        if (staying is group and cancelled is None) or not isinstance(others, ExceptionGroup | None):
            raise
        error = dispatch.error(others or RuntimeError("a task of the handler raised SystemExit or GeneratorExit"))
        # trio groups a cancellation with the exceptions raised during it. The checkpoint re-raises an outer
        # cancellation without those exceptions.
        await checkpoint()
    else:
        return result, None
    is_over = scope.cancel_called if scope is not None else anyio.current_time() >= context.deadline
    return None, OpTimeout(dispatch.op, limit) if is_over else error


def _writing(dispatch: Dispatch) -> AbstractContextManager[None]:
    """Let what the op emits be progress of its call, and not of the tool that caused the dispatch."""
    progress = dispatch.call.progress
    if progress is None:
        return unobserved()
    return progress.writing(dispatch.op, is_root=dispatch.within is None and dispatch.op == progress.tool)
