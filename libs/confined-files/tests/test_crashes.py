"""Writers that are killed, and a full disk."""

import hashlib
import random
import subprocess
import sys
import time

# Replaces a file repeatedly, alternating between two contents, and prints a number after each commit.
WRITER = """
import anyio
from pathlib import Path
from sideband_confined_files import ConfinedFolder

async def main():
    folder = ConfinedFolder(Path(ROOT))
    for number in range(1_000_000):
        async with folder.writing("x", overwrite=True) as file:
            await file.write(b"ab"[number % 2 : number % 2 + 1] * 3_000_000)
            await file.commit(overwrite=True)
        print(number, flush=True)

anyio.run(main)
"""

# Fills a file system of its own, mounted in its own namespace.
FILLER = """
import anyio, sys
from pathlib import Path
from sideband_confined_files import ConfinedFolder, FileFailed

async def main():
    root = Path(sys.argv[1])
    folder = ConfinedFolder(root)
    async with folder.writing("kept") as file:
        await file.write(b"old")
        await file.commit()
    for size in (3_000_000, 600_000):
        try:
            async with folder.writing("kept", overwrite=True) as file:
                await file.write(b"x" * size)
                await file.commit(overwrite=True)
        except FileFailed as error:
            assert error.nothing_happened
            print(error.message)
    print(sorted(one.name for one in root.iterdir()), (root / "kept").read_bytes())

anyio.run(main)
"""


def test_killed_writer_leaves_either_the_old_or_the_new_file(root, names):
    whole = {hashlib.sha256(letter * 3_000_000).hexdigest() for letter in (b"a", b"b")}
    chance = random.Random(7)
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER.replace("ROOT", repr(str(root)))], stdout=subprocess.PIPE
        ) as process:
            process.stdout.readline()
            time.sleep(chance.random() * 0.1)  # a random moment of the write
            process.kill()
        assert hashlib.sha256((root / "x").read_bytes()).hexdigest() in whole
        assert [one for one in names(root) if not one.endswith(".part")] == ["x"]


def test_full_disk_leaves_the_old_file(root):
    mount = 'mount -t tmpfs -o size=512k none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", root, sys.executable, FILLER],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.count("No space left on device") == 2, done.stderr
    assert done.stdout.endswith("['kept'] b'old'\n"), done.stdout
