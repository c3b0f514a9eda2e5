"""Measures loading many skills, compared with listing their folders and reading the same files.

The skills have the shape of published collections: instructions of several kilobytes, unknown keys, some references,
and in two of five a script that does not use the SDK. One in fifty has typed tools, which are parsed. ``hostile`` is a
skill of 4 MB that costs Python's parser two gigabytes, and must be rejected within the limits of a skill.

The second load finds the parsed skills in the cache of a home folder, and is compared with loading without it.

Run: ``python -m benchmarks.skill_loading [FOLDER]``, with a folder on the disk to measure. Prints one line of JSON.
Bounds: 8 times the floor, and 15,700 skills in ten seconds, which is 0.64 ms per skill.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time, sleep

import anyio
from sideband.loading import LoadedSkills, SkillSources
from sideband_skills import FolderLoader

from ._rows import Row, ratio_of, report

SKILLS = 2_000
ROUNDS = 5
# seconds after which a change is not followed by another one with the same time
SETTLED = 2.5
DESIGN_MS = 10_000 / 15_700
KEYS = ("version", "author", "tags", "category", "triggers", "argument-hint", "model", "homepage")
WORDS = ("skill", "deploy", "cluster", "report", "query", "model", "review", "table", "index", "token", "request")
SCRIPT = """
import json, sys

def {name}(path, limit=10):
    with open(path) as stream:
        rows = [line.split(",") for line in stream]
    return json.dumps([row for row in rows if len(row) > limit], indent=2)
"""
TOOLS = '''
from sideband.skill import http, tool

@tool
async def fetch(url: str, limit: int = 10) -> dict:
    """Fetch a page.

    Args:
        url: the page
    """
    return await http.get(url)
'''


def text(random: Random, words: int) -> str:
    """Return lines of random words."""
    return "\n".join(" ".join(random.choices(WORDS, k=12)) for _ in range(words // 12))


def write_skills(source: Path) -> None:
    """Write skills whose content depends only on their number."""
    for number in range(SKILLS):
        random = Random(number)
        folder = source / f"group-{number % 40}" / f"demo-{number}"
        (folder / "references").mkdir(parents=True)
        keys = "".join(f"{key}: {random.choice(WORDS)}\n" for key in random.sample(KEYS, k=random.randint(0, 3)))
        head = f"---\nname: demo-{number}\ndescription: {text(random, 30)!r}\n{keys}---\n"
        (folder / "SKILL.md").write_text(head + text(random, 1_400))
        for name in range(random.randint(0, 5)):
            (folder / "references" / f"{name}.md").write_text(text(random, 600))
        if number % 5 < 2:
            code = "".join(SCRIPT.format(name=f"part_{part}") for part in range(40))
            (folder / "script.py").write_text(code)
        if number % 50 == 0:
            (folder / "tools.py").write_text(TOOLS)


def read_files(folder: str) -> int:
    """List a folder, examine each file, and read manifests and Python: the floor."""
    size = 0
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            size += read_files(entry.path)
        elif entry.stat(follow_symlinks=False).st_size and entry.name.endswith(("SKILL.md", ".py")):
            size += len(Path(entry.path).read_text())
    return size


def load(source: Path, home: Path | None) -> LoadedSkills:
    """Load all skills of a folder, with the cache of a home folder."""
    return anyio.run(FolderLoader().load, SkillSources(folders=(source,), home=home))


def processor_ms(source: Path, home: Path | None = None) -> tuple[float, LoadedSkills]:
    """Return the processor time of loading in this process and its children, and what was loaded."""
    children, began = getrusage(RUSAGE_CHILDREN), process_time()
    loaded = load(source, home)
    ended = getrusage(RUSAGE_CHILDREN)
    parsing = ended.ru_utime + ended.ru_stime - children.ru_utime - children.ru_stime
    return (process_time() - began + parsing) * 1e3, loaded


def measure(folder: Path) -> None:
    """Measure alternating rounds, and a hostile skill."""
    source, hostile = folder / "skills", folder / "hostile"
    write_skills(source)
    hostile.mkdir()
    (hostile / "SKILL.md").write_text("---\nname: hostile\ndescription: x\n---\n")
    for number in range(4):
        (hostile / f"part{number}.py").write_text("import sideband.skill\n" + "a\n" * 524_000)
    ours, floor, second = [], [], []
    sleep(SETTLED)
    first, _ = processor_ms(source, folder / "home")
    for _ in range(ROUNDS):
        began = process_time()
        read_files(str(source))
        floor.append((process_time() - began) * 1e3 / SKILLS)
        taken, loaded = processor_ms(source)
        assert len(loaded.skills) == SKILLS, loaded.problems[:3]
        ours.append(taken / SKILLS)
        taken, cached = processor_ms(source, folder / "home")
        assert cached == loaded
        second.append(taken / SKILLS)
    rejected, found = processor_ms(hostile)
    limit = FolderLoader().limits.seconds
    report(
        [
            Row(
                f"loading a skill, {SKILLS:,} together",
                median(ours),
                "ms",
                median(floor),
                bound=8,
                ratio=ratio_of(ours, floor),
            ),
            Row("the same, of 15,700 in ten seconds", median(ours), "ms", bound=DESIGN_MS, is_absolute=True),
            Row(f"the first load of {SKILLS:,}, which writes the cache", first / SKILLS, "ms", median(ours), bound=2),
            Row(
                "the second load, with the cache, against one without",
                median(second),
                "ms",
                median(ours),
                bound=1 / 2.5,
                ratio=ratio_of(second, ours),
            ),
            Row("a hostile skill of 4 MB", rejected / 1e3, "s", bound=limit, is_absolute=True),
        ],
        hostile_tools=[tool.full_name for skill in found.skills for tool in skill.tools],
    )


def main() -> None:
    """Run the benchmark and print one line of JSON."""
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        measure(Path(folder))


if __name__ == "__main__":
    main()
