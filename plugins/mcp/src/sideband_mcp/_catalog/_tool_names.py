"""The names of tools: servers choose any text, a model sees lower-case words joined by underscores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sideband.tools import is_tool_name

_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[-_./: ]+")


def tool_names(server: str, names: Iterable[str]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the name of each tool for models, and the problems of tools without one.

    Two tools whose names become equal are both left out, because a call could mean either.

    Args:
        server: the name of the server, which is their namespace.
        names: the names, as the server writes them.

    Example:
        >>> tool_names("github", ["createIssue", "go-on", "go_on"])
        ({'createIssue': 'github.create_issue'}, ['`go-on` and `go_on` have the same name `github.go_on`'])
    """
    known = dict.fromkeys(names)
    made = {name: f"{server}.{word_of(name)}" for name in known}
    problems = [
        f"`{name}` cannot be written as words of a-z and 0-9" for name, one in made.items() if not is_tool_name(one)
    ]
    counts = Counter(made.values())
    for twice in sorted(one for one, count in counts.items() if count > 1 and is_tool_name(one)):
        same = " and ".join(f"`{name}`" for name, one in made.items() if one == twice)
        problems.append(f"{same} have the same name `{twice}`")
    return {name: one for name, one in made.items() if is_tool_name(one) and counts[one] == 1}, problems


def word_of(name: str) -> str:
    """Return a name as words of lower-case letters joined by ``_``, as far as it can be written so."""
    return _OTHER.sub("_", _BORDER.sub("_", name)).strip("_").lower()
