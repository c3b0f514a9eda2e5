"""The names of the tools of plugins: the part before the dot, their namespace, belongs to one distribution.

A plugin may have another name than its tools. Without an owner of the namespace, a package that is installed later
could add tools that look to a model as if they belonged to another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..plugins import PluginRecord
from ..tools import Tool

_PLUGIN = "plugin "


def provider(source: str, records: Iterable[PluginRecord]) -> str:
    """Return what provides a tool, with the distributions of a plugin.

    Args:
        source: the ``source`` of the tool.
        records: the plugins with tools that are not denied.
    """
    distributions = [one.distribution for one in records if f"{_PLUGIN}{one.name}" == source]
    return f"{source} of {' and '.join(distributions)}" if distributions else source


def foreign_names(tools: Sequence[Tool], records: Sequence[PluginRecord]) -> Mapping[tuple[str, str], str]:
    """Return the tools of plugins in namespaces that belong to another distribution, each with the reason.

    The namespace belongs to the distributions whose entry point has its name. Without such an entry point it belongs to
    the distribution with tools in it, and with several, to none of them.

    Args:
        tools: the tools of plugins and skills.
        records: the plugins with tools that are not denied, including those that cannot be used.

    Returns:
        The reasons by source and name of the tool.
    """
    distributions: dict[str, set[str]] = {}
    for record in records:
        distributions.setdefault(f"{_PLUGIN}{record.name}", set()).add(record.distribution)
    spaces: dict[str, list[Tool]] = {}
    for tool in tools:
        if tool.source in distributions:
            spaces.setdefault(tool.name.partition(".")[0], []).append(tool)
    found: dict[tuple[str, str], str] = {}
    for space, inside in spaces.items():
        sources = sorted({tool.source for tool in inside})
        owners = distributions.get(f"{_PLUGIN}{space}")
        if owners is None and len(set().union(*(distributions[source] for source in sources))) > 1:
            rivals = " and ".join(provider(source, records) for source in sources)
            why = f"{rivals} have tools named `{space}`; deny one of these plugins in `[policy.deny]`"
            found |= {(tool.source, tool.name): why for tool in inside}
        elif owners is not None:
            why = f"the name `{space}` belongs to {provider(f'{_PLUGIN}{space}', records)}"
            found |= {(tool.source, tool.name): why for tool in inside if not distributions[tool.source] <= owners}
    return found
