"""The standard streams of a process, taken for messages."""

import os
import subprocess
import sys

PROGRAM = """
import os, sys
from sideband_serving import claimed_streams

with claimed_streams() as streams:
    print("noise")
    os.write(1, b"noise of a descriptor\\n")
    read = sys.stdin.read()
    os.write(streams.output, b"message " + os.read(streams.input, 100) + repr(read).encode())
print("after")
"""


def test_only_messages_reach_the_output_and_the_rest_goes_to_the_errors():
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="asked", capture_output=True, text=True, check=True, env=buffered
    )
    assert done.stdout == "message asked''after\n"
    assert sorted(done.stderr.splitlines()) == ["noise", "noise of a descriptor"]
