"""The prompt of a chat at a terminal: what is drawn is erased, whenever it ends and whatever is printed meanwhile."""

import os
import pty
import sys
from contextlib import suppress

import anyio
import pyte
import pytest
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
        self._history = history
        self._monkeypatch = monkeypatch

    def frontend(self):
        # Not in a fixture, because pytest sets them again before the test begins.
        self._monkeypatch.setattr(sys, "stdin", self.stdin)
        self._monkeypatch.setattr(sys, "stdout", self.stdout)
        return TerminalFrontend(
            history=self._history,
            redact=str,
            status=lambda: "[status]",
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

    def close(self):
        self.stdin.close()
        self.stdout.close()
        os.close(self._master)


@pytest.fixture
def screen(tmp_path, monkeypatch):
    screen = Screen(tmp_path / "history", monkeypatch)
    monkeypatch.setenv("TERM", "xterm-256color")
    yield screen
    screen.close()


async def test_line_between_the_end_of_a_prompt_and_its_removal_is_kept(screen):
    frontend = screen.frontend()

    async def read():
        with pytest.raises(EOFError):
            await frontend.read()

    async with frontend.opened(), anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await screen.wait_for(">")
        assert screen.rows == ["\u258c [status]", ">"]
        frontend.leave()
        frontend.line("late")
    assert screen.rows == ["\u258c late"]
