"""Hints for errors that a skill gets because it runs in a worker. They name ops of installed families only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from ..loading import UNUSABLE_MODULES


@frozen
class _Advice:
    """What to do about a topic.

    Args:
        fact: why the skill got the error.
        op: the op to use instead.
        otherwise: what to do if its family is not installed.
    """

    fact: str
    op: str
    otherwise: str


_ADVICE: Mapping[str, _Advice] = {
    "databases": _Advice("a worker cannot open databases", "sql.query", "pass the rows as an argument"),
    "environment": _Advice(
        "a worker has no environment variables; make the value a parameter of the tool", "secrets.read", ""
    ),
    "files": _Advice(
        "a worker can only read the files of its skill", "files.read", "pass the content as an argument, and return it"
    ),
    "files.read": _Advice(
        "a worker can only read the files of its skill", "files.read", "pass the content as an argument"
    ),
    "files.write": _Advice("a worker cannot write files", "files.write", "return the content"),
    "input": _Advice("a worker has no terminal; make the answer a parameter of the tool", "", ""),
    "network": _Advice("a worker has no network", "http.get", "pass the data as an argument"),
    "programs": _Advice("a worker cannot start programs", "shell.run", "pass their output as an argument"),
    "size": _Advice("a result has at most 16 MiB and 250,000 values; return a part or a summary", "files.write", ""),
}
_TOPICS = {"http": "network", "secrets": "environment", "shell": "programs", "sql": "databases"}


def hint(topic: str, skill: str, families: Collection[str]) -> str:
    """Return what to do about an error, or an empty string if the topic is unknown.

    Args:
        topic: the topic of the error, which the worker claims.
        skill: the skill's name part.
        families: the installed op families.
    """
    kind, _, module = topic.partition(":")
    if kind == "module":
        family = _unusable(module)
        if family is None:
            return (
                "add the package to a `# /// script` block of the skill, and run "
                f"`sideband skills install {skill}`; workers have only the standard library and the skill"
            )
        topic = _TOPICS.get(family, "")
    advice = _ADVICE.get(topic)
    if advice is None:
        return ""
    family = advice.op.partition(".")[0]
    use = f"use `{advice.op}`, as in `from sideband.skill import {family}`" if family in families else advice.otherwise
    if advice.otherwise:
        return f"{use}; {advice.fact}"
    return f"{advice.fact}, or {use}" if use else advice.fact


def _unusable(module: str) -> str | None:
    """Return the family to use instead of a module that does not work in a worker, or ``None`` if it may work."""
    parts = module.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((UNUSABLE_MODULES[name] for name in names if name in UNUSABLE_MODULES), None)
