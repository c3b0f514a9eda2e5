"""``sideband skills test SKILL``: run the tests of a skill with the testing kit, as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sideband import UsageError
from sideband.command_line import make_host, notice, print_json, run_async
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

from .._errors import KitMissing, SkillTestsUnread

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_PARENTS = 4
_REPLAYING = "--sideband-record=none"
# 0 passed, 1 failed, 2 errors before the tests or an interrupt, 3 a failure of pytest, 4 usage, 5 no tests
_CODES = {
    0: ExitCode.SUCCESS,
    1: ExitCode.FAILURE,
    2: ExitCode.FAILURE,
    3: ExitCode.CONFIGURATION,
    4: ExitCode.USAGE,
    5: ExitCode.FAILURE,
}


def configure_tests(parser: ArgumentParser) -> None:
    """Add the arguments of ``skills test``, besides those of all commands with a host."""
    parser.add_argument("--yes", action="store_true", help="run the tests also if SKILL is a name, not a folder")
    parser.add_argument("name", metavar="SKILL", help="the folder of a skill, or the name of one")
    parser.add_argument("words", metavar="WORD", nargs=REMAINDER, help="further words for pytest, such as `-k name`")


def run_tests(arguments: Namespace) -> int:
    """Run the tests and return the exit code: 0 if all passed, 1 if not, 5 without the testing kit."""
    folder, is_named = _folder(arguments)
    tests, root = _tests(folder)
    if is_named and not arguments.yes:
        raise SkillTestsUnread(arguments.name, tests)
    if missing := [name for name in ("pytest", "sideband_testing") if not _is_installed(name)]:
        raise KitMissing(missing)
    words = [word for word in arguments.words if word != "--json"]
    as_json = arguments.json or len(words) < len(arguments.words)
    with TemporaryDirectory(prefix="sideband-skill-tests-") as home:
        report = Path(home, "report.xml")
        command = [sys.executable, "-m", "pytest", "--rootdir", str(root), "-p", "no:cacheprovider", _REPLAYING]
        command += [f"--junit-xml={report}"] if as_json else []
        command += [str(tests), *(words[1:] if words[:1] == ["--"] else words)]
        code = run_async(lambda: _run(command, root, home, as_json=as_json))
        if as_json:
            print_json({"skill": str(folder), "tests": str(tests), **_results(report), "pytest": code})
    return _CODES.get(code, ExitCode.FAILURE)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


async def _run(command: Sequence[str], root: Path, home: str, *, as_json: bool) -> int:
    import anyio

    # What pytest prints for people must not be mixed with the data.
    output = sys.stderr if as_json else None
    done = await anyio.run_process(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=None, check=False, cwd=root, env=_environment(home)
    )
    return done.returncode


def _environment(home: str) -> Mapping[str, str]:
    """Return the environment without what could change the outcome: settings of hosts and of pytest."""
    found = {name: value for name, value in os.environ.items() if not name.startswith(("SIDEBAND_", "PYTEST_"))}
    return {**found, "SIDEBAND_HOME": home, "PYTHONDONTWRITEBYTECODE": "1"}


def _folder(arguments: Namespace) -> tuple[Path, bool]:
    """Return the folder of the skill, and whether the skill was named, so that the user may not have read its code."""
    path = Path(arguments.name)
    if path.is_dir():
        return path.resolve(), False
    if os.sep in arguments.name:
        raise UsageError(f"`{path}` is not a folder", hint="pass the folder with SKILL.md, or the name of a skill")

    async def main() -> Path:
        async with make_host(arguments, skill_dirs=arguments.skill_dir) as host:
            loaded = await host.skills()
        by_name = {name: skill for skill in loaded.skills for name in (skill.name, skill.key)}
        if arguments.name not in by_name:
            problem = f"unknown skill `{arguments.name}`{did_you_mean(arguments.name, by_name)}"
            raise UsageError(problem, hint="pass its folder, or a name that `sideband skills list` shows")
        return by_name[arguments.name].source

    return run_async(main), True


def _tests(folder: Path) -> tuple[Path, Path]:
    """Return the folder of the tests, and the folder that has it: that of the skill, or of its project."""
    for parent in _projects(folder):
        if (parent / "tests").is_dir():
            return parent / "tests", parent
    hint = "put them into a folder `tests` beside SKILL.md or in the project; `sideband new skill NAME` has one"
    raise UsageError(f"the skill in {folder} has no tests", hint=hint)


def _projects(folder: Path) -> Iterator[Path]:
    """Yield the folder, and its parents up to that of the project, if it is in one."""
    parents = [folder, *folder.parents[:_PARENTS]]
    for number, parent in enumerate(parents):
        if (parent / "pyproject.toml").is_file():
            yield from parents[: number + 1]
            return
    yield folder


def _results(report: Path) -> dict[str, Any]:
    """Return the results of each test from pytest's report; none if there is no report."""
    from xml.etree.ElementTree import ParseError, parse

    try:
        cases = [_case(one) for one in parse(report).getroot().iter("testcase")]  # noqa: S314  as above
    except (OSError, ParseError):
        notice("notice: pytest wrote no report")
        cases = []
    counts = {outcome: sum(case["outcome"] == outcome for case in cases) for outcome in ("passed", "failed", "skipped")}
    return {**counts, "cases": cases}


def _case(element: Element) -> dict[str, Any]:
    outcome, message = "passed", ""
    for part in element:
        if part.tag in ("failure", "error", "skipped"):
            outcome, message = "skipped" if part.tag == "skipped" else "failed", part.get("message", "")
    name = "::".join(filter(None, (element.get("classname"), element.get("name"))))
    return {"name": name, "outcome": outcome, "message": message, "seconds": float(element.get("time", "0"))}
