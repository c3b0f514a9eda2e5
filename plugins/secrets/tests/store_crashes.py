"""Kill a process with SIGKILL before each of its file operations, one per run, and report what is left.

    python store_crashes.py FOLDER ACTION

Prints one JSON line per killed run: the value that a new process reads, and which files exist after its next change.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from sideband_secrets import StoredSecret, _sealing
from sideband_secrets._encrypted import EncryptedBackend
from sideband_secrets._keys import Keys

PASSPHRASE = "correct horse battery"
CHANGES = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.chmod", "tempfile.mkstemp"}


def backend(folder):
    return EncryptedBackend(folder=folder, keys=Keys(file=folder / "key", passphrase=lambda _new: PASSPHRASE))


def store(folder, name, value, **more):
    keys = Keys(file=folder / "key", source=more.get("source", "auto"), passphrase=lambda _new: PASSPHRASE)
    stored = StoredSecret(name, value, True)
    EncryptedBackend(folder=folder, keys=keys).change(name, lambda _before: stored)


ACTIONS = {
    "first": (None, lambda folder: store(folder, "token", b"new-value", source="file")),
    "change": ("file", lambda folder: store(folder, "token", b"new-value")),
    "rekey": ("file", lambda folder: backend(folder).rekey("file", passphrase=None, key_file=None)),
    "to-passphrase": ("file", lambda folder: backend(folder).rekey("passphrase", passphrase=PASSPHRASE, key_file=None)),
    "to-file": ("passphrase", lambda folder: backend(folder).rekey("file", passphrase=None, key_file=None)),
    "passphrase": ("passphrase", lambda f: backend(f).rekey("passphrase", passphrase=PASSPHRASE, key_file=None)),
}


def killed_at(work, steps):
    """Return whether the working process was killed before step number ``steps``."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    remaining = steps

    def watch(event, _arguments):
        nonlocal remaining
        if event in CHANGES:
            remaining -= 1
            if remaining < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    work()
    os._exit(0)


def main(place, action):
    _sealing._SCRYPT["n"] = 16  # fast; the cost is not the subject here
    source, work = ACTIONS[action]
    before = place / "before"
    before.mkdir(mode=0o700)
    if source:
        store(before, "token", b"old-value", source=source)
    for steps in range(1000):
        folder = place / str(steps)
        shutil.copytree(before, folder)
        if not killed_at(lambda: work(folder), steps):  # noqa: B023  called immediately
            break
        found = backend(folder).read("token")
        store(folder, "other", b"another-value", source="file" if source is None else "auto")
        files = sorted(file.name for file in folder.iterdir())
        again = backend(folder).read("token")
        print(json.dumps({"value": found and found.value.decode(), "files": files, "same": again == found}))


main(Path(sys.argv[1]), sys.argv[2])
