"""A process that parses Python for a loader. It uses only the standard library, and never runs what it parses.

Python's parser cannot be interrupted, holds the interpreter's lock, and may use hundreds of bytes of memory per byte of
source. A process can be limited and killed instead. It reads requests from its standard input: the length of the text,
the processor time and the number of nodes that it may have, and the text. It writes answers: a kind, the processor time
that was used, the number of nodes, the length of the content, and the content.
"""

from __future__ import annotations

import ast
import pickle
import resource
import struct
import sys
from math import ceil
from time import process_time

REQUEST = struct.Struct("!IdQ")
ANSWER = struct.Struct("!cdQI")
TREE, INVALID, NODES = b"T", b"I", b"N"
# Enough for real code. The default is not, since a level of a tree takes several levels of the pickler.
_RECURSION = 4_000


def main() -> None:
    """Answer requests until the standard input is closed."""
    _limit(resource.RLIMIT_AS, int(sys.argv[1]))
    for what in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        _limit(what, 0)
    sys.setrecursionlimit(_RECURSION)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(header := requests.read(REQUEST.size)) == REQUEST.size:
        length, seconds, nodes = REQUEST.unpack(header)
        text = requests.read(length)
        began = process_time()
        # the kernel ends the process with SIGXCPU, also inside the parser
        _limit(resource.RLIMIT_CPU, ceil(began + seconds))
        kind, count, content = parse(text, nodes)
        answers.write(ANSWER.pack(kind, process_time() - began, count, len(content)) + content)
        answers.flush()


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    try:
        resource.setrlimit(what, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
    except (ValueError, OSError):
        # macOS does not support all limits
        return


def parse(text: bytes, nodes: int) -> tuple[bytes, int, bytes]:
    """Return the kind of the answer, the number of nodes, and the pickled tree or the reason for its absence."""
    try:
        tree = ast.parse(text.decode("utf-8", "surrogatepass"))
        count = 0
        for _ in ast.walk(tree):
            count += 1
            if count > nodes:
                return NODES, count, b""
        return TREE, count, pickle.dumps(tree, protocol=5)
    except SyntaxError as error:
        return INVALID, 0, f"line {error.lineno}: {error.msg}".encode(errors="replace")
    except RecursionError:
        return INVALID, 0, b"nested too deeply"
    except MemoryError:
        # the parser raises it for deep nesting, too
        return INVALID, 0, b"nested too deeply, or too large for the memory limit"
    except ValueError as error:
        return INVALID, 0, str(error).encode(errors="replace")


if __name__ == "__main__":
    main()
