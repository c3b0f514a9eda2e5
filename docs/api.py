"""Compare the public API with its recorded description, or record it.

    python docs/api.py                     print each change as an addition or a break; exit code 1 if there is work
    python docs/api.py --record            record the additions
    python docs/api.py --record VERSION    record everything at the release of a version, and remove the waivers

A break is refused unless ``docs/api-waivers.toml`` accepts it. docs/publishing.md describes the rules.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from _api.compare import Change, compare, merged
from _api.snapshot import Snapshot, current, read, write
from _api.waivers import Waiver, WaiversInvalid, read_waivers, refused, unused

SNAPSHOT = Path(__file__).parent / "api.json"
WAIVERS = Path(__file__).parent / "api-waivers.toml"
RECORD = "python docs/api.py --record"


def problems(recorded: Snapshot, now: Snapshot, waivers: Sequence[Waiver]) -> list[str]:
    """Return what must be done before a change to the API can be merged, one sentence each."""
    changes = compare(recorded.facts, now.facts, version=now.version)
    found = [f"{change}\n    revert it, or accept it in docs/api-waivers.toml:\n{_waiver(change, now.version)}"
             for change in refused(changes, waivers)]  # fmt: skip
    found += [
        f"the waiver of `{one.rule}` for {one.path} accepts no change: remove it from docs/api-waivers.toml"
        for one in unused(changes, waivers)
    ]
    if merged(recorded.facts, now.facts) != recorded.facts:
        found.append(f"additions are not recorded: run `{RECORD}`, and commit docs/api.json")
    return found


def record(recorded: Snapshot, now: Snapshot) -> Snapshot:
    """Return the recorded description with the additions since then. Breaks are recorded at the next release."""
    return Snapshot(recorded.version, merged(recorded.facts, now.facts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--record", nargs="?", const="", metavar="VERSION", help="write docs/api.json")
    options = parser.parse_args(arguments)
    now = current()
    try:
        waivers = read_waivers(WAIVERS)
    except WaiversInvalid as error:
        return _fail([str(error)])
    if not SNAPSHOT.exists():
        if not options.record:
            return _fail(["docs/api.json does not exist: run `python docs/api.py --record VERSION`"])
        write(SNAPSHOT, Snapshot(options.record, now.facts))
        return 0
    recorded = read(SNAPSHOT)
    if options.record is None:
        changes = compare(recorded.facts, now.facts, version=now.version)
        sys.stdout.writelines(f"{change}\n" for change in changes)
        return _fail(problems(recorded, now, waivers))
    if options.record == "":
        write(SNAPSHOT, record(recorded, now))
        return 0
    return _release(options.record, recorded, now, waivers)


def _release(version: str, recorded: Snapshot, now: Snapshot, waivers: Sequence[Waiver]) -> int:
    """Record everything, unless a break is not accepted. The waivers have served their purpose."""
    found = problems(record(recorded, now), now, waivers)
    if found:
        return _fail(found)
    write(SNAPSHOT, Snapshot(version, now.facts))
    head, *_ = re.split(r"^\[\[waiver\]\]", WAIVERS.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)
    WAIVERS.write_text(head.rstrip() + "\n", encoding="utf-8")
    return 0


def _waiver(change: Change, version: str) -> str:
    keys = {"rule": change.rule.name, "path": change.path, "reason": "", "since": version}
    return "\n".join(["    [[waiver]]", *(f"    {name} = '{value}'" for name, value in keys.items())])


def _fail(found: Sequence[str]) -> int:
    sys.stderr.writelines(f"{one}\n" for one in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
