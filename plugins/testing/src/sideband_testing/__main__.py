"""The program ``python -m sideband_testing``, which `sideband plugins check NAME` runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

import attrs
from sideband.exit_codes import ExitCode
from sideband.rendering import render

from ._errors import KitError
from .conformance._running import CheckResult, check_installed

_SHOWN = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}


def main(words: Sequence[str] | None = None) -> int:
    """Run the program, and return its exit code: 1 if a check failed, 5 if a plugin is unusable."""
    parser = argparse.ArgumentParser(prog="python -m sideband_testing", description="Check plugins of sideband.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="run the conformance tests of a plugin's kind")
    check.add_argument("name", metavar="PLUGIN", help="a plugin as KIND.NAME or NAME, or a distribution")
    check.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args(words)
    try:
        results = check_installed(arguments.name)
    except KitError as error:
        text = json.dumps({"error": error.as_dict()}) if arguments.json else f"error: {render(error.message)}"
        print(text, file=sys.stdout if arguments.json else sys.stderr)
        return ExitCode.CONFIGURATION
    shown = json.dumps([attrs.asdict(one) for one in results], indent=2) if arguments.json else _table(results)
    print(shown)
    failed = [one for one in results if one.outcome == "failed"]
    if not results or any(one.is_loading for one in failed):
        return ExitCode.CONFIGURATION
    return ExitCode.FAILURE if failed else ExitCode.SUCCESS


def _table(results: Sequence[CheckResult]) -> str:
    """Return the results as lines: for each plugin its checks, with the remedy of each that failed.

    The package may be hostile: no text of it moves the cursor.
    """
    lines: list[str] = []
    plugin = ""
    for one in results:
        if one.plugin != plugin:
            plugin = one.plugin
            lines.append(plugin)
        reason = f": {one.reason}" if one.reason else ""
        lines.append(f"  {_SHOWN[one.outcome]:<8} {one.check.replace('_', ' ')}{reason}")
        if one.outcome == "failed":
            details = {"expected": one.expected, "happened": one.happened, "remedy": one.remedy}
            lines += [f"           {name}: {text}" for name, text in details.items()]
    counts = [f"{sum(one.outcome == kind for one in results)} {kind}" for kind in _SHOWN]
    return "\n".join([*(render(line) for line in lines), ", ".join(counts)])


if __name__ == "__main__":
    sys.exit(main())
