"""The async part of a command whose output is a pipe that its reader has closed."""

import os
import sys
from contextlib import redirect_stdout

import anyio
import pytest
from anyio.to_thread import run_sync
from sideband.command_line import run_async


def run_unread(main):
    """Run a function with a pipe without a reader as standard output."""
    out, inside = os.pipe()
    os.close(out)
    with os.fdopen(inside, "w") as stream, redirect_stdout(stream):
        try:
            return run_async(main)
        finally:
            assert sys.stdout is stream


def test_write_cancels_the_command():
    async def main():
        print("hello", flush=True)
        await anyio.sleep(20)
        pytest.fail("not cancelled")

    with pytest.raises(BrokenPipeError):
        run_unread(main)


def test_error_during_the_cancellation_is_not_reported():
    async def main():
        print("hello", flush=True)
        try:
            await anyio.sleep(20)
        finally:
            raise RuntimeError("a resource that was cancelled")

    with pytest.raises(BrokenPipeError):
        run_unread(main)


def test_error_without_a_write_is_reported():
    async def main():
        raise RuntimeError("of ours")

    with pytest.raises(RuntimeError, match="of ours"):
        run_unread(main)


def test_write_in_another_thread_is_an_error_there():
    async def main():
        with pytest.raises(BrokenPipeError):
            await run_sync(lambda: print("hello", flush=True))
        return "done"

    assert run_unread(main) == "done"
