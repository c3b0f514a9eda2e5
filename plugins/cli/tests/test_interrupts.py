import subprocess
import sys

import pytest

INTERRUPTED_THREAD = """
import os, pathlib, signal, threading, time
import anyio
from sideband.command_line import run_async

def interrupt():
    # The state of the main thread: the event loop has to be waiting in the kernel.
    waits_in = pathlib.Path(f"/proc/self/task/{os.getpid()}/wchan")
    while "poll" not in waits_in.read_text():
        time.sleep(0)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores interrupts

async def main():
    threading.Thread(target=interrupt).start()
    await anyio.sleep_forever()

try:
    run_async(main)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupt_that_does_not_wake_the_main_thread_ends_the_command():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_THREAD], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


TERMINATED = """
import os, signal
import anyio
from sideband.command_line import Terminated
from sideband.command_line import run_async

async def main():
    os.kill(os.getpid(), signal.{name})
    try:
        await anyio.sleep_forever()
    finally:
        print("cleaned up")

try:
    run_async(main)
except Terminated as error:
    print(error.code, int(error.exit_code))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_termination_signal_cancels_the_command(name):
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED.format(name=name)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("cleaned up\nterminated 143\n", "")


def test_ignored_hangup_signal_stays_ignored():
    # As `nohup` starts a command.
    code = (
        "import os, signal\nfrom sideband.command_line import run_async\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "async def main():\n    os.kill(os.getpid(), signal.SIGHUP)\n    return 'done'\nprint(run_async(main))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")
