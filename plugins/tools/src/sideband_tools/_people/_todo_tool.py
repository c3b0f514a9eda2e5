"""The tool `todo`: the list of the tasks of a session."""

from __future__ import annotations

from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._errors import TaskUnknown
from ._models import Task, TaskList, TodoParams

_KIND = "tools.todo"
_SIGNS = {"open": " ", "active": ">", "done": "x"}


@tool("todo", level=Level.SAFE, exclusive=True)
async def todo(params: TodoParams, ctx: ToolContext) -> str:
    """Keep the list of the tasks of this session, and see it.

    Use it for work of several steps: add the steps first, set one to `active` when you begin it, and to `done` at once
    when it is complete.
    """
    stored = TaskList.model_validate(ctx.session.last_custom(_KIND) or {})
    changed = _changed(stored, params)
    if changed != stored:
        await ctx.session.append_custom(_KIND, changed.model_dump(mode="json"))
    return _shown(changed)


def _changed(stored: TaskList, params: TodoParams) -> TaskList:
    """Return the list with the changes.

    Raises:
        TaskUnknown: if it has no task with one of the numbers; then nothing is changed.
    """
    tasks = {one.number: one for one in stored.tasks}
    for number in (*params.remove, *(one.number for one in params.set)):
        if number not in tasks:
            raise TaskUnknown(number, list(tasks))
    for change in params.set:
        update = change.model_dump(include={"state"}, exclude_none=True)
        if change.text is not None:
            update["text"] = _line(change.text)
        tasks[change.number] = tasks[change.number].model_copy(update=update)
    for number in params.remove:
        tasks.pop(number, None)
    for number, text in enumerate(params.add, stored.added + 1):
        tasks[number] = Task(number=number, text=_line(text))
    return TaskList(tasks=tuple(tasks.values()), added=stored.added + len(params.add))


def _line(text: str) -> str:
    return " ".join(text.split())


def _shown(tasks: TaskList) -> str:
    if not tasks.tasks:
        return "[the list is empty]"
    done = sum(one.state == "done" for one in tasks.tasks)
    lines = [f"{one.number} [{_SIGNS[one.state]}] {one.text}" for one in tasks.tasks]
    return "\n".join([*lines, f"[{done} of {len(lines)} done]"])
