"""The prompt of a chat at a terminal: what is drawn is erased, whenever it ends and whatever is printed meanwhile."""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from contextlib import contextmanager, suppress

import anyio
import pyte
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_input
from sideband_cli._chat._reflow import breaks_rows
from sideband_cli._chat._terminal import TerminalFrontend

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Screen:
    """A frontend at a pseudo-terminal, and what it shows."""

    def __init__(self, history, monkeypatch):
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        self._master, inside = pty.openpty()
        os.set_blocking(self._master, False)
        self.stdin, self.stdout = os.fdopen(inside, "r"), os.fdopen(os.dup(inside), "w")
        self._set_size(80)
        self._history = history
        self.status = "[status]"
        self._monkeypatch = monkeypatch

    @contextmanager
    def frontend(self):
        """Return a frontend whose input and output are this terminal."""
        # Not in a fixture, because pytest sets them again before the test begins.
        self._monkeypatch.setattr(sys, "stdin", self.stdin)
        self._monkeypatch.setattr(sys, "stdout", self.stdout)
        with create_app_session(input=create_input(self.stdin)):
            yield TerminalFrontend(
                history=self._history,
                redact=str,
                status=lambda: self.status,
                title=lambda: "title",
                commands=list,
                folder=lambda: self._history.parent,
                interrupt=lambda: False,
                unfold=lambda: None,
            )

    @property
    def rows(self):
        """The rows that are shown, without empty ones."""
        with suppress(BlockingIOError):
            self._stream.feed(os.read(self._master, 65_536))
        return [row.rstrip() for row in self._screen.display if row.strip()]

    async def wait_for(self, row):
        with anyio.fail_after(20):
            while row not in self.rows:
                await anyio.lowlevel.checkpoint()

    async def shows(self, *rows):
        """Check the rows. The kernel passes on what was written a moment later."""
        with anyio.move_on_after(20):
            while self.rows != [*rows]:
                await anyio.lowlevel.checkpoint()
        assert self.rows == [*rows]

    def type(self, text):
        os.write(self._master, text.encode())

    def resize(self, columns):
        """Change the width as most terminals do: rows that no longer fit are broken."""
        rows, cursor = self._screen.display, self._screen.cursor
        broken = [
            [row.rstrip()[at : at + columns] for at in range(0, len(row.rstrip()), columns)] or [""] for row in rows
        ]
        y = sum(map(len, broken[: cursor.y]))
        self._screen.reset()
        self._screen.resize(columns=columns)
        self._stream.feed("\r\n".join(one for row in broken[: cursor.y + 1] for one in row).encode())
        self._screen.cursor_position(y + 1 + cursor.x // columns, cursor.x % columns + 1)
        self._set_size(columns)
        signal.raise_signal(signal.SIGWINCH)

    def _set_size(self, columns):
        fcntl.ioctl(self.stdin, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def close(self):
        self.stdin.close()
        self.stdout.close()
        os.close(self._master)


@pytest.fixture
def screen(tmp_path, monkeypatch):
    screen = Screen(tmp_path / "history", monkeypatch)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TMUX", "socket")
    yield screen
    screen.close()


async def until_left(frontend):
    with pytest.raises(EOFError):
        await frontend.read()


async def test_line_between_the_end_of_a_prompt_and_its_removal_is_kept(screen):
    with screen.frontend() as frontend:
        async with frontend.opened(), anyio.create_task_group() as tasks:
            tasks.start_soon(until_left, frontend)
            await screen.wait_for(">")
            await screen.shows("\u258c [status]", ">")
            frontend.leave()
            frontend.line("late")
    await screen.shows("\u258c late")


async def test_narrower_terminal_shows_no_old_rows(screen):
    screen.status = "[" + "status " * 10 + "]"
    with screen.frontend() as frontend:
        async with frontend.opened(), anyio.create_task_group() as tasks:
            tasks.start_soon(until_left, frontend)
            await screen.wait_for(">")
            frontend.line("before")
            await screen.wait_for("\u258c before")
            await screen.wait_for(">")
            screen.resize(30)
            await screen.wait_for("\u258c [status status status stat\u2026")
            await screen.wait_for(">")
            await screen.shows("\u258c before", "\u258c [status status status stat\u2026", ">")
            frontend.leave()
    await screen.shows("\u258c before")


async def test_hidden_character_in_the_input_is_shown_and_kept(screen):
    read = []

    async def one(frontend):
        read.append(await frontend.read())

    with screen.frontend() as frontend:
        async with frontend.opened(), anyio.create_task_group() as tasks:
            tasks.start_soon(one, frontend)
            await screen.wait_for(">")
            screen.type("a\u202eb\u00e9")
            await screen.wait_for("> a\\u202eb\u00e9")
            screen.type("\x1b[D\x1b[Dc")
            await screen.wait_for("> a\\u202ecb\u00e9")
            screen.type("\r")
    assert read == ["a\u202ecb\u00e9"]


@pytest.mark.parametrize(
    ("environment", "breaks"),
    [({}, False), ({"TMUX": "socket"}, True), ({"TERM_PROGRAM": "vscode"}, True), ({"TERM_PROGRAM": "other"}, False)],
)
def test_terminal_that_breaks_rows_is_recognized_by_its_variables(environment, breaks):
    assert breaks_rows(environment) is breaks
