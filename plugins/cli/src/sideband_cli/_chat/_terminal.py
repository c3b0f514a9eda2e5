"""A chat at a terminal: a prompt that stays at the bottom, and everything else printed above it.

The prompt is there also while the agent works, so that messages can be queued. Only lines that are complete are printed
above it; the one that is still growing is a part of it, drawn anew with each piece.

It runs on asyncio, as the library for line editing does. The terminal never goes back to editing lines itself while the
chat goes on: what is typed while nobody reads would appear in the middle of the text, and Ctrl-D would be lost.
"""

from __future__ import annotations

import asyncio
import io
import sys
import termios
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import Lock

from .._terminal._clean import clean
from .._terminal._streamed_text import LineBreaker, StreamCleaner
from .._terminal._style import dim, has_colours
from .._terminal._words import fitted

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent

_ASKED = object()
"""What the prompt ends with when it gives way to a question."""
_MARGIN = 1


class TerminalFrontend:
    """A ``Sink``, and whoever sits before it.

    Args:
        history: the file of what was typed before.
        redact: takes what is secret out of what is kept there.
        status: makes the line above the prompt.
        words: the chat commands, for completion.
        interrupt: called for Ctrl-C; whether there was something to interrupt.

    Attributes:
        takes_turns: messages can be typed, and queued, while the agent works.
    """

    takes_turns = False

    def __init__(
        self,
        *,
        history: Path,
        redact: Callable[[str], str],
        status: Callable[[], str],
        words: Callable[[], Iterable[str]],
        interrupt: Callable[[], bool],
    ) -> None:
        from prompt_toolkit.output import create_output
        from prompt_toolkit.utils import get_cwidth

        self._stdout = sys.stdout
        self._output = create_output(self._stdout)
        # Nothing here needs to know where the cursor is, and the answers of slow terminals would get into the input.
        self._output.enable_cpr = False  # type: ignore[attr-defined]  # the class for terminals has it
        self._status = status
        self._interrupt = interrupt
        self._cleaner = StreamCleaner()
        self._breaker = LineBreaker(self._room, get_cwidth)
        self._thinks = False
        self._progress = ""
        self._draft: str | Document = ""
        self._foreign: deque[str] = deque()
        self._turn = Lock()
        self._questions = 0
        self._left = False
        self._session: PromptSession[Any] = self._make_session(history, redact, words)
        self._app = self._session.app

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """While this is entered, what anybody prints appears above the prompt; afterwards the terminal is as before."""
        loop = asyncio.get_running_loop()

        def take(line: str) -> None:  # in whichever thread
            self._foreign.append(line)
            loop.call_soon_threadsafe(self._show_foreign)

        foreign = _Above(take)
        with _unedited(sys.stdin.fileno()), redirect_stdout(foreign), redirect_stderr(foreign):
            try:
                yield
            finally:
                self._show_foreign()

    # What a chat reads.

    async def read(self) -> str:
        """The next message or chat command.

        Raises:
            EOFError: there is none: Ctrl-D, or ``leave``.
        """
        while True:
            async with self._turn:
                if self._left:
                    raise EOFError
                text = await self._prompt(self._session, default=self._draft, pre_run=self._give_way)
            if text is not _ASKED:
                self._draft = ""
                if text.strip():
                    self._print("> " + clean(text).replace("\n", "\n  "))
                return str(text)

    async def ask(self, reason: str, question: str) -> bool:
        """Ask in place of the prompt; what was typed there is there again afterwards."""
        self._questions += 1
        try:
            self._give_way()
            async with self._turn:
                self.line(reason)
                answer = await self._answer(question)
        finally:
            self._questions -= 1
        self._print(f"{question}{'y' if answer else 'n'}")
        return answer

    def suggest(self, text: str) -> None:
        """Put a text into the prompt, above what is typed there."""
        if self._session.app.is_running:
            self._session.default_buffer.insert_text(text)
        else:
            self._draft = text

    def leave(self) -> None:
        """End ``read``, now or when it is called next."""
        self._left = True
        self._exit(exception=EOFError())

    async def _answer(self, question: str) -> bool:
        from prompt_toolkit.history import DummyHistory
        from prompt_toolkit.input.typeahead import clear_typeahead
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.shortcuts import PromptSession

        keys = KeyBindings()

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            self._interrupt()
            event.app.exit(result="")

        # What was typed before the question was there is no answer to it.
        clear_typeahead(self._session.input)
        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        session: PromptSession[str] = PromptSession(
            input=self._session.input,
            output=self._output,
            history=DummyHistory(),
            key_bindings=keys,
            erase_when_done=True,
        )
        try:
            text = await self._prompt(session, message=question)
        except EOFError:
            return False
        return text.strip().lower() in ("y", "yes")

    async def _prompt(self, session: PromptSession[Any], **how: Any) -> Any:
        self._app = session.app
        return await session.prompt_async(**how, handle_sigint=False, set_exception_handler=False)

    def _give_way(self) -> None:
        if self._questions:
            self._draft = self._session.default_buffer.document
            self._exit(result=_ASKED)
        elif self._left:
            self._exit(exception=EOFError())

    def _exit(self, **how: Any) -> None:
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(**how)

    def _make_session(
        self, history: Path, redact: Callable[[str], str], words: Callable[[], Iterable[str]]
    ) -> PromptSession[Any]:
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.enums import DEFAULT_BUFFER
        from prompt_toolkit.filters import has_focus
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.output import ColorDepth
        from prompt_toolkit.shortcuts import CompleteStyle, PromptSession
        from prompt_toolkit.styles import Style

        class History(FileHistory):
            def store_string(self, string: str) -> None:
                super().store_string(redact(string))

        keys = KeyBindings()
        keys.add("enter", filter=has_focus(DEFAULT_BUFFER))(_send_or_continue)
        keys.add("escape", "enter", filter=has_focus(DEFAULT_BUFFER))(_continue)
        keys.add("c-c", filter=has_focus(DEFAULT_BUFFER))(self._interrupted)
        keys.add("<sigint>")(self._interrupted)
        return PromptSession(
            self._message,
            output=self._output,
            history=History(history),
            key_bindings=keys,
            multiline=True,
            prompt_continuation="  ",
            completer=WordCompleter(lambda: list(words()), sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,
            enable_suspend=True,
            erase_when_done=True,
            color_depth=None if has_colours(self._stdout) else ColorDepth.DEPTH_1_BIT,
            style=Style.from_dict({"aside": "ansibrightblack"}),
        )

    def _interrupted(self, event: KeyPressEvent) -> None:
        if self._interrupt():
            return
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            self.line("Ctrl-D or /quit leaves")

    def _message(self) -> StyleAndTextTuples:
        """The line that grows, what goes on, the status, and the prompt itself."""
        above = [
            ("", self._breaker.rest),
            ("class:aside", fitted(self._progress)),
            ("class:aside", fitted(self._status())),
        ]
        return [*((style, f"{text}\n") for style, text in above if text), ("", "> ")]

    # What a chat shows.

    def text(self, part: str) -> None:
        """Show more of what the model says."""
        self._grow(part, thinks=False)

    def thinking(self, part: str) -> None:
        """Show more of what the model thinks."""
        self._grow(part, thinks=True)

    def end_text(self) -> None:
        """End the line that grows."""
        self._cleaner.end()
        self._print_lines(self._breaker.end())

    def aside(self, text: str) -> None:
        """Nothing: it has been shown as it came."""

    def line(self, text: str) -> None:
        """Show something beside the conversation."""
        self.end_text()
        self._print(*(dim(line, self._stdout) for line in clean(text).split("\n")))

    def progress(self, text: str) -> None:
        """Show what goes on right now."""
        self._progress = clean(text)
        self.refresh()

    def refresh(self) -> None:
        """Show the status as it is now."""
        self._app.invalidate()

    def say(self, text: str) -> None:
        """Show what was asked for with a chat command."""
        self.end_text()
        self._print(clean(text))

    def _grow(self, part: str, *, thinks: bool) -> None:
        if thinks is not self._thinks:
            self.end_text()
            self._thinks = thinks
        self._print_lines(self._breaker.feed(self._cleaner.feed(part)))
        self.refresh()

    def _print_lines(self, lines: Iterable[str]) -> None:
        self._print(*(dim(line, self._stdout) if self._thinks else line for line in lines))

    def _print(self, *lines: str) -> None:
        """Put lines above the prompt, which is taken away, and drawn anew below them."""
        if not lines:
            return
        shown = self._app.is_running and not self._app.is_done
        if shown:
            self._app.renderer.erase()
        self._stdout.write("".join(f"{line}\n" for line in lines))
        self._stdout.flush()
        if shown:
            self._app.invalidate()

    def _show_foreign(self) -> None:
        """What was printed by whoever knows nothing of the chat."""
        while self._foreign:
            self.end_text()
            self._print(clean(self._foreign.popleft()))

    def _room(self) -> int:
        return self._output.get_size().columns - _MARGIN


@contextmanager
def _unedited(descriptor: int) -> Iterator[None]:
    """A terminal that leaves what is typed to whoever reads it next, and is as before afterwards."""
    before = termios.tcgetattr(descriptor)
    during = termios.tcgetattr(descriptor)
    during[3] &= ~(termios.ICANON | termios.ECHO)
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, during)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class _Above(io.TextIOBase):
    """Takes what is written to a standard stream, line by line."""

    def __init__(self, take: Callable[[str], object]) -> None:
        self._take = take
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line)
        return len(text)

    def writable(self) -> bool:
        return True


def _send_or_continue(event: KeyPressEvent) -> None:
    """Enter sends, but behind a backslash it begins another line."""
    buffer = event.current_buffer
    if buffer.document.text_before_cursor.endswith("\\"):
        buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)
    else:
        buffer.validate_and_handle()


def _continue(event: KeyPressEvent) -> None:
    event.current_buffer.newline(copy_margin=False)
