"""The parameters of the tools for working with the user."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

TaskState = Literal["open", "active", "done"]
TaskText = Annotated[str, StringConstraints(min_length=1, max_length=300, strip_whitespace=True)]


class Task(BaseModel):
    """A task of the list.

    Attributes:
        number: its number, which never changes.
        text: what is to be done.
        state: ``open``, ``active`` or ``done``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    text: str
    state: TaskState = "open"


class TaskList(BaseModel):
    """The list of tasks as it is stored in a session.

    Attributes:
        tasks: the tasks, in the order in which they were added.
        added: how many tasks were added so far, the number of the last one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: tuple[Task, ...] = ()
    added: int = 0


class TaskChange(BaseModel):
    """A change of ``todo``."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=1, description="The number of the task in the list.")
    state: TaskState | None = Field(default=None, description="Its new state.")
    text: TaskText | None = Field(default=None, description="Its new text.")


class TodoParams(BaseModel):
    """The parameters of ``todo``."""

    model_config = ConfigDict(extra="forbid")

    add: list[TaskText] = Field(default=[], max_length=50, description="Tasks to add at the end.")
    set: list[TaskChange] = Field(default=[], max_length=50, description="New states or texts of tasks.")
    remove: list[int] = Field(default=[], max_length=50, description="The numbers of tasks to remove.")


class OfferedAnswer(BaseModel):
    """An option of a question of ``ask``."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=300, description="The answer.")
    description: str = Field(default="", max_length=500, description="What it means or leads to.")


class AskedQuestion(BaseModel):
    """A question of ``ask``."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=2_000, description="The question, complete and in plain words.")
    options: list[OfferedAnswer] = Field(
        default=[], max_length=20, description="Answers to choose from, the best first. The user may type another one."
    )
    multiple: bool = Field(default=False, description="Whether several options may be chosen.")


class AskParams(BaseModel):
    """The parameters of ``ask``."""

    model_config = ConfigDict(extra="forbid")

    questions: list[AskedQuestion] = Field(min_length=1, max_length=5, description="The questions.")
