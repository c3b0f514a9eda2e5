"""The chat frontend for a terminal: a prompt that stays at the bottom, with all output above it.

The prompt is also active while the agent is working, so that messages can be queued. Only complete lines are printed
above it; the incomplete last line is part of the prompt and redrawn with each chunk.

It requires asyncio, as prompt_toolkit does. The terminal's own line editing stays off for the whole chat: otherwise,
text typed while no prompt is reading would be echoed into the output, and Ctrl-D would be lost.
"""

from __future__ import annotations

import asyncio
import sys
import termios
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import Lock
from anyio.lowlevel import checkpoint
from sideband.command_line import marked
from sideband.rendering import MARK, indented, render

from .._terminal._columns import fitted, rows_of
from .._terminal._markdown import MarkdownText
from .._terminal._questions import TypedAnswer, parse_answer, prompt
from .._terminal._request_text import question_rows
from .._terminal._streamed_text import LineBreaker, StreamRenderer
from .._terminal._style import dim, has_colours, with_diff_colors
from .._terminal._styled import Fragment, styled_lines
from .._terminal._words import one_line
from ._pasted_images import PastedImages
from ._standard_streams import LineWriter, without_line_editing

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent
    from sideband.messages import ImagePart

_ASKED = object()
"""The result of a prompt that is interrupted by a question."""
_MARGIN = 1
_ESCAPE_SECONDS = 0.2
_MAX_HELD_LINES = 2_000


class TerminalFrontend:
    """A frontend with line editing, history and completion.

    Args:
        history: the file of earlier input.
        redact: removes secrets from the input before it is stored in the history.
        status: returns the lines above the prompt.
        title: returns the title of the terminal.
        commands: returns the names and the summaries of the chat commands, for completion.
        folder: returns the folder to which paths are relative, for completion.
        interrupt: called for Ctrl-C; returns whether something was interrupted.
        unfold: called for Ctrl-O; shows the output of tools.

    Attributes:
        takes_turns: false: messages can be typed and queued while the agent is working.
    """

    takes_turns = False

    def __init__(
        self,
        *,
        history: Path,
        redact: Callable[[str], str],
        status: Callable[[], str],
        title: Callable[[], str],
        commands: Callable[[], Iterable[tuple[str, str]]],
        folder: Callable[[], Path],
        interrupt: Callable[[], bool],
        unfold: Callable[[], None],
    ) -> None:
        from prompt_toolkit.output import create_output

        from ._prompt_session import PromptActions, chat_prompt

        self._stdout = sys.stdout
        self._output = create_output(self._stdout)
        # The cursor position is not needed, and the replies of slow terminals would end up in the input.
        self._output.enable_cpr = False  # type: ignore[attr-defined]  # defined by the class for terminals
        self._status = status
        self._title = title
        self._shown_title = ""
        self._interrupt = interrupt
        self._renderer = StreamRenderer()
        self._thoughts = LineBreaker(self._width)
        self._answers = MarkdownText(self._width) if has_colours(self._stdout) else LineBreaker(self._width)
        self._thinks = False
        self._progress = ""
        self._shows_progress = False
        self._draft: str | Document = ""
        self._foreign: deque[str] = deque()
        self._held: deque[str] | None = None
        self._turn = Lock()
        self._questions = 0
        self._left = False
        self._images = PastedImages(self.line)
        self._session: PromptSession[Any] = chat_prompt(
            self._message,
            self._output,
            PromptActions(interrupt, self._interrupted, unfold, self._paste_image),
            history=history,
            redact=redact,
            commands=commands,
            folder=folder,
            colored=has_colours(self._stdout),
        )
        self._app = self._session.app

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Print all writes to the standard streams above the prompt, and restore the terminal at the end."""
        loop = asyncio.get_running_loop()

        def take(line: str) -> None:  # called from any thread
            self._foreign.append(line)
            loop.call_soon_threadsafe(self._show_foreign)

        foreign = LineWriter(take)
        with without_line_editing(sys.stdin.fileno()), redirect_stdout(foreign), redirect_stderr(foreign):
            try:
                yield
            finally:
                self._show_foreign()
                if self._shown_title:
                    self._output.clear_title()
                    self._output.flush()

    # Input.

    async def read(self) -> str:
        """Return the next message or chat command.

        Raises:
            EOFError: after Ctrl-D or ``leave``.
        """
        while True:
            async with self._turn:
                if self._left:
                    raise EOFError
                text = await self._prompt(self._session, default=self._draft, pre_run=self._yield_to_question)
            if text is not _ASKED:
                self._draft = ""
                if text.strip():
                    rows = rows_of(indented(f"> {text}"), self._width() - len(MARK) - 1)
                    self._print(*self._marked(rows))
                return str(text)

    async def ask(self, reason: Sequence[str], question: str, keys: str) -> TypedAnswer:
        """Ask a question in place of the prompt, then restore the text that was typed there."""
        (asked,) = self._marked([prompt(question, keys)])
        self._questions += 1
        try:
            self._yield_to_question()
            async with self._turn:
                await checkpoint()  # an answer just now may have ended this question
                self.end_text()
                rows = question_rows(reason, self._width() - len(MARK) - 1)
                self._print(*self._marked(with_diff_colors(row, self._stdout) for row in rows))
                self.ring()
                with self._holding():
                    text = await self._answer(asked)
                    while keys and (text or "").lstrip().startswith("/"):  # meant for the chat, not as a no
                        self._write(*self._marked(["answer the question first; then chat commands work again"]))
                        text = await self._answer(asked)
                    answer = parse_answer(text or "", keys)
                    self._write(f"{asked}{answer.shown}")
        finally:
            self._questions -= 1
        if text is None:
            self._interrupt()  # only now, because it cancels the task that reads the answer
        return answer

    def suggest(self, text: str) -> None:
        """Insert a text into the prompt, rendered: the user must see what they send."""
        text = render(text, prose=True)
        if self._session.app.is_running:
            self._session.default_buffer.insert_text(text)
        else:
            self._draft = text

    def ring(self) -> None:
        """Ring the bell of the terminal."""
        self._output.bell()

    def leave(self) -> None:
        """Make the current or next ``read`` raise ``EOFError``."""
        self._left = True
        self._exit(exception=EOFError())

    async def _answer(self, question: str) -> str | None:
        """Return what the user answers; ``None`` after Ctrl-C."""
        from prompt_toolkit.input.typeahead import clear_typeahead

        from ._prompt_session import INTERRUPTED, question_prompt

        # Text typed before the question appeared must not answer it.
        clear_typeahead(self._session.input)
        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        try:
            text = await self._prompt(question_prompt(self._session.input, self._output), message=question)
        except EOFError:
            return ""
        return None if text is INTERRUPTED else str(text)

    async def _prompt(self, session: PromptSession[Any], **options: Any) -> Any:
        self._erase_progress()
        self._app = session.app
        # A terminal sends Alt as Esc and the key, so Esc alone is known only after a moment.
        self._app.ttimeoutlen = self._app.timeoutlen = _ESCAPE_SECONDS
        return await session.prompt_async(**options, handle_sigint=False, set_exception_handler=False)

    def _yield_to_question(self) -> None:
        if self._questions:
            if self._session.app.is_running:  # else it still has the text that was sent last
                self._draft = self._session.default_buffer.document
            self._exit(result=_ASKED)
        elif self._left:
            self._exit(exception=EOFError())

    def _exit(self, **outcome: Any) -> None:
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(**outcome)

    def _paste_image(self, event: KeyPressEvent) -> None:
        event.app.create_background_task(self._images.paste(event.current_buffer.insert_text))

    def take_images(self, text: str) -> list[ImagePart]:
        """Return the images whose marks are in a message, and forget all others."""
        return self._images.take(text)

    def _interrupted(self, event: KeyPressEvent) -> None:
        if self._interrupt():
            return
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            self.line("use Ctrl-D or /quit to leave")

    def _message(self) -> StyleAndTextTuples:
        """Return the incomplete line, the progress message, the status and the prompt itself."""
        self._show_title()
        above = [
            *(("", line) for line in self._breaker.preview),
            *(
                ("class:aside", fitted(line, self._width()))
                for line in self._marked(filter(None, [self._progress, *map(one_line, self._status().split("\n"))]))
            ),
        ]
        return [*((style, f"{text}\n") for style, text in above if text), ("", "> ")]

    def _show_title(self) -> None:
        title = one_line(self._title())
        if title != self._shown_title:
            self._shown_title = title
            self._output.set_title(title)

    # Output.

    def text(self, part: str) -> None:
        """Show a part of the model's text."""
        self._stream(part, thinks=False)

    def thinking(self, part: str) -> None:
        """Show a part of the model's thinking."""
        self._stream(part, thinks=True)

    def end_text(self) -> None:
        """Complete the current line."""
        self._renderer.end()
        self._print_lines(self._breaker.end())

    def aside(self, text: str) -> None:
        """Do nothing: the text was streamed."""

    def line(self, text: str) -> None:
        """Show a status message; all its lines but the first are indented."""
        self.end_text()
        rows = rows_of(indented(text), self._width() - len(MARK) - 1)
        self._print(*(dim(line, self._stdout) for line in self._marked(rows)))

    def progress(self, text: str) -> None:
        """Replace the progress message."""
        self._progress = one_line(text)
        if not self._app.is_running and self._held is None:
            self._show_progress()
        self.refresh()

    def _show_progress(self) -> None:
        """Show the progress message in the line of the cursor, as long as there is no prompt; or erase it."""
        if self._progress or self._shows_progress:
            (line,) = self._marked([self._progress]) if self._progress else [""]
            self._stdout.write(f"\r\x1b[K{dim(fitted(line, self._width()), self._stdout) if line else ''}")
            self._stdout.flush()
        self._shows_progress = bool(self._progress)

    def _erase_progress(self) -> None:
        if self._shows_progress:
            self._shows_progress = False
            self._stdout.write("\r\x1b[K")
            self._stdout.flush()

    def refresh(self) -> None:
        """Redraw the prompt and the status."""
        self._app.invalidate()

    def say(self, text: str) -> None:
        """Show the output of a chat command."""
        self.end_text()
        self._print(render(text, prose=True))

    @property
    def _breaker(self) -> LineBreaker | MarkdownText:
        return self._thoughts if self._thinks else self._answers

    def show(self, lines: Iterable[Sequence[Fragment]]) -> None:
        """Show lines with styles."""
        self.end_text()
        for fragments in lines:
            rendered = [(style, render(text, prose=True)) for style, text in fragments]
            plain = [("", text) for _, text in rendered]
            self._print(*styled_lines(rendered if has_colours(self._stdout) else plain, self._width()))

    def _stream(self, part: str, *, thinks: bool) -> None:
        if thinks is not self._thinks:
            self.end_text()
            self._thinks = thinks
        self._print_lines(self._breaker.feed(self._renderer.feed(part)))
        self.refresh()

    def _print_lines(self, lines: Iterable[str]) -> None:
        self._print(*(dim(line, self._stdout) if self._thinks else line for line in lines))

    def _print(self, *lines: str) -> None:
        """Print lines above the prompt, which is erased and redrawn below them."""
        if self._held is not None:
            self._held.extend(lines)
        elif lines:
            self._write(*lines)

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Keep lines back for a block, so that none comes between a question and its reason, or imitates it."""
        held = self._held = deque[str](maxlen=_MAX_HELD_LINES)
        try:
            yield
        finally:
            self._held = None
            self._print(*held)

    def _write(self, *lines: str) -> None:
        self._erase_progress()
        shown = self._app.is_running
        if shown:  # also once it is done: it stays on the screen until it has ended
            self._app.renderer.erase()
        self._stdout.write("".join(f"{line}\n" for line in lines))
        self._stdout.flush()
        if shown and not self._app.is_done:
            self._app.invalidate()

    def _marked(self, lines: Iterable[str]) -> list[str]:
        return marked(lines, self._stdout)

    def _show_foreign(self) -> None:
        """Print the lines that other code wrote to the standard streams."""
        while self._foreign:
            self.end_text()
            self._print(render(self._foreign.popleft(), prose=True))

    def _width(self) -> int:
        return self._output.get_size().columns - _MARGIN
