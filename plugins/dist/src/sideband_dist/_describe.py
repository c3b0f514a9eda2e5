"""A program that describes the plugins of the environment that runs it. It needs the core of that environment only.

It reads a policy from standard input, and writes one line with the plugins as JSON to standard output.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from sideband.plugins import PluginError, PluginHost, PluginPolicy, list_plugins


async def _describe(policy: PluginPolicy) -> dict[str, Any]:
    found = []
    with tempfile.TemporaryDirectory() as home:
        async with PluginHost(policy, home=Path(home), load_at_start=False) as plugins:
            for record in plugins.records:
                fields = ("kind", "name", "value", "api", "distribution", "version", "reason")
                described = {name: getattr(record, name) for name in fields}
                described |= {"state": record.state.value, "ops": {}, "uses": []}
                if record.state.usable and record.kind == "op":
                    try:
                        family = (await plugins.load("op", record.name, activate=False)).contribution
                    except PluginError as error:
                        described |= {"state": "failed", "reason": error.reason}
                    else:
                        ops = {op.name: f"{op.level.name} {op.requires or ''}".strip() for op in family.ops}
                        described |= {"ops": dict(sorted(ops.items())), "uses": sorted(family.uses)}
                found.append(described)
            # A plugin may be denied although it is not installed, for the day when it is.
            problems = list_plugins(home, policy._replace(deny={}))[1]
            return {"plugins": found, "problems": list(problems)}


def main() -> None:
    """Describe the plugins."""
    given = json.loads(sys.stdin.read())
    only = None if given["only"] is None else frozenset(given["only"])
    policy = PluginPolicy(given["deny"], only, given["conflicts"], config=given["config"])
    found = anyio.run(_describe, policy)
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
