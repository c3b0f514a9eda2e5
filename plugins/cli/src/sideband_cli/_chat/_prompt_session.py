"""The prompt of a chat, and that of a question: what each key does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, emacs_mode, has_focus
from prompt_toolkit.history import DummyHistory, FileHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

from ._completion import ChatCompleter, completes_while_typing
from ._editing_mode import uses_vi_keys
from ._reflow import breaks_rows, erase_broken_rows
from ._shown_input import ShownInput

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.output import Output

INTERRUPTED = object()
"""The result of the prompt of a question that is interrupted by the user."""
_MENU_ROWS = 6


@frozen
class PromptActions:
    """What the keys of a chat do besides editing.

    Attributes:
        interrupt: Esc.
        interrupt_or_clear: Ctrl-C.
        unfold: Ctrl-O.
        paste: Ctrl-V.
    """

    interrupt: Callable[[], object]
    interrupt_or_clear: Callable[[KeyPressEvent], None]
    unfold: Callable[[], None]
    paste: Callable[[KeyPressEvent], None]


def chat_prompt(
    message: Callable[[], StyleAndTextTuples],
    output: Output,
    actions: PromptActions,
    *,
    history: Path,
    redact: Callable[[str], str],
    commands: Callable[[], Iterable[tuple[str, str]]],
    folder: Callable[[], Path],
    colored: bool,
) -> PromptSession[Any]:
    """Return the prompt of a chat.

    Args:
        message: returns what is shown before the input.
        output: the terminal.
        actions: what its keys do.
        history, redact, commands, folder: see ``TerminalFrontend``.
        colored: whether the terminal has colors.
    """

    class History(FileHistory):
        def store_string(self, string: str) -> None:
            super().store_string(redact(string))

    session: PromptSession[Any] = PromptSession(
        message,
        output=output,
        history=History(history),
        key_bindings=_keys(actions),
        multiline=True,
        vi_mode=uses_vi_keys(),
        prompt_continuation="  ",
        input_processors=[ShownInput()],
        completer=ChatCompleter(commands, folder),
        complete_in_thread=True,
        complete_while_typing=Condition(
            lambda: completes_while_typing(session.default_buffer.document.text_before_cursor)
        ),
        reserve_space_for_menu=_MENU_ROWS,
        enable_suspend=True,
        erase_when_done=True,
        color_depth=None if colored else ColorDepth.DEPTH_1_BIT,
        style=Style.from_dict({"aside": "ansibrightblack"}),
    )
    return _without_broken_rows(session)


def question_prompt(source: Input, output: Output) -> PromptSession[Any]:
    """Return the prompt of a question: Esc answers no, or leaves the question open.

    Args:
        source: the input of the chat.
        output: the terminal.
    """
    keys = KeyBindings()

    @keys.add("escape")
    def _(event: KeyPressEvent) -> None:
        if not event.app.is_done:
            event.app.exit(result="")

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        if not event.app.is_done:  # it may be pressed again before the prompt has ended
            event.app.exit(result=INTERRUPTED)

    session: PromptSession[Any] = PromptSession(
        input=source, output=output, history=DummyHistory(), key_bindings=keys, erase_when_done=True
    )
    return _without_broken_rows(session)


def _without_broken_rows(session: PromptSession[Any]) -> PromptSession[Any]:
    if breaks_rows():
        erase_broken_rows(session.app)
    return session


def _keys(actions: PromptActions) -> KeyBindings:
    keys, typing = KeyBindings(), has_focus(DEFAULT_BUFFER)
    keys.add("enter", filter=typing)(_send_or_break_line)
    keys.add("escape", "enter", filter=typing)(_break_line)
    keys.add("c-c", filter=typing)(actions.interrupt_or_clear)
    keys.add("<sigint>")(actions.interrupt_or_clear)
    keys.add("c-o", filter=typing)(lambda _: actions.unfold())
    keys.add("c-v", filter=typing)(actions.paste)
    # With the keys of vi, Esc ends the insertion of text.
    keys.add("escape", filter=typing & emacs_mode)(lambda _: actions.interrupt())
    return keys


def _send_or_break_line(event: KeyPressEvent) -> None:
    """Send the input, or begin a new line after a backslash."""
    buffer = event.current_buffer
    if buffer.document.text_before_cursor.endswith("\\"):
        buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)
    else:
        buffer.validate_and_handle()


def _break_line(event: KeyPressEvent) -> None:
    event.current_buffer.newline(copy_margin=False)
