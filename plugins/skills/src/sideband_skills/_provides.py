"""The services that a skill provides: ``sideband.provides: weather_lookup=lookup``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sideband.suggestions import did_you_mean

from ._problems import Problems, shown

_SERVICE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_LONGEST = 64
_MOST = 50
_FORM = "write `service=tool`, separated by spaces, such as `weather_lookup=lookup`"


def read_provides(file: str, metadata: Mapping[str, str], problems: Problems) -> dict[str, str]:
    """Return the name of a tool for each service. The tools are not known yet, see ``provided``.

    Args:
        file: the manifest, for messages.
        metadata: its metadata.
        problems: receives the problems.
    """
    found: dict[str, str] = {}
    for word in metadata.get("sideband.provides", "").split():
        problems.meter.check()
        service, equals, tool = word.partition("=")
        if not (equals and tool and _SERVICE.match(service) and len(service) <= _LONGEST):
            reason = f"`sideband.provides` has the invalid entry {shown(word)}; it is ignored"
            rule = f"a service is named by lower-case words joined by `_`, up to {_LONGEST} characters; {_FORM}"
            problems.warn("provides", reason, rule, file=file)
        elif service in found:
            reason = f"`sideband.provides` names the service `{service}` twice; using `{service}={found[service]}`"
            problems.warn("provides", reason, "remove one of them", file=file)
        elif len(found) == _MOST:
            reason = f"`sideband.provides` names more than {_MOST} services; `{service}` is ignored"
            problems.warn("provides", reason, "split the skill", file=file)
        else:
            found[service] = tool
    return found


def provided(wanted: Mapping[str, str], tools: Sequence[str], file: str, problems: Problems) -> dict[str, str]:
    """Return the services whose tools the skill has.

    Args:
        wanted: the name of a tool for each service.
        tools: the names of the tools of the skill.
        file: the manifest, for messages.
        problems: receives the problems.
    """
    found = {service: tool for service, tool in wanted.items() if tool in tools}
    for service, tool in wanted.items():
        if service not in found:
            known = f"; its tools are {', '.join(tools)}" if tools else "; it has no tools"
            problems.warn(
                "provides.tool",
                f"`sideband.provides` names the unknown tool {shown(tool)}{did_you_mean(tool, tools)}{known}; the "
                f"service `{service}` is not provided",
                f"mark the function with `@tool`, or {_FORM}",
                file=file,
            )
    return found
