"""The rules for the answers to the questions of the templates.

This module uses the standard library only, since its text is also the hook ``pre_gen_project`` of each template, with
which cookiecutter and cruft refuse the same answers. ``write_hooks.py`` writes the hooks.
"""

from __future__ import annotations

import keyword
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class AnswerProblem(NamedTuple):
    """A reason why an answer cannot be used: the question, the problem with its value, and what to answer instead."""

    question: str
    text: str
    hint: str


_LONGEST_NAME = 40
_LONGEST_TEXT = 200

# The packages, plugins and commands of sideband itself, without the prefix of the distributions.
_TAKEN = """
acp agent anthropic approval approvals attach audit auth blobs browser call cassettes chat checkpoint cli
command-tools compaction completion config confined-files cookie core crypto dbos demo desktop dist doctor events
export files goals grants guard-approval guard-limits guard-loop guard-redact guard-risk hooks http import init
instructions limits llm local-model mcp memory model-client models monitors new op openai ops otel output pi-sessions
plan plist plugins postgres progress project-instructions prompt record redis remote replay retry router run sandbox
schedule scripted sdk seatbelt secrets serve server services serving sessions settings-file shell skill skill-packages
skills sql sqlite store-sqlite subagent templates testing tool tool-selection tools undo word-ranking
"""
# What `sideband.skill` provides itself: an op family with such a name could not be imported by skills.
_SKILL_NAMES = ("annotations", "capabilities", "checkpoint", "dispatch", "now", "random", "tool", "uuid")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)
_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&*+/=?^_|~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", re.ASCII)
_URL = re.compile(r"https?://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?(/[A-Za-z0-9._~!$&()*+,;=:@%/-]*)?", re.ASCII)
_FRAGMENT = re.compile(r"(#[A-Za-z0-9._~-]+)?", re.ASCII)
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+((a|b|rc)[0-9]+)?(\.dev[0-9]+)?", re.ASCII)


def problems(answers: Mapping[str, str]) -> Iterator[AnswerProblem]:
    """Yield the problems with the answers to the questions of a template."""
    for question, answer in answers.items():
        if question.startswith("_"):
            continue
        problem = _text_problem(answer, optional=question == "author_email")
        if problem is None and answer:
            problem = _problem(question, answer, answers.get("kind"))
        if problem is not None:
            yield AnswerProblem(question, *problem)


def _text_problem(answer: str, *, optional: bool) -> tuple[str, str] | None:
    """Return what is wrong with an answer whatever the question is: files of any format must be able to hold it."""
    shown = ascii(answer[:_LONGEST_TEXT])
    hidden = next((one for one in answer if not one.isprintable()), None)
    if hidden is not None:
        return f"{shown} contains the character U+{ord(hidden):04X}, which is invisible", "use visible characters only"
    if len(answer) > _LONGEST_TEXT:
        return f"{shown[:40]}… has {len(answer)} characters", f"use at most {_LONGEST_TEXT} characters"
    if answer != answer.strip():
        return f"{shown} begins or ends with a space", "remove the space"
    if not answer and not optional:
        return "it is empty", "answer with a text"
    return None


def _problem(question: str, answer: str, kind: str | None) -> tuple[str, str] | None:
    if question == "name":
        return _name_problem(answer, kind)
    if question == "project":
        return _project_problem(answer)
    if question == "author_email" and not _EMAIL.fullmatch(answer):
        return f"{answer!r} is not an e-mail address", "write it as name@example.org, or leave it empty"
    if question.endswith("_url"):
        base, sign, rest = answer.partition("#")
        if not _URL.fullmatch(base) or not _FRAGMENT.fullmatch(sign + rest):
            return f"{answer!r} is not the address of a web page", "write it as https://example.org/page"
    if question == "sideband_version" and not _VERSION.fullmatch(answer):
        return f"{answer!r} is not a version", "write it as 1.2.0"
    return None


def _name_problem(name: str, kind: str | None) -> tuple[str, str] | None:
    """Return what is wrong with the name of a skill or plugin, which names its distribution and module too."""
    problem = _shape_problem(name, "weather")
    module = name.replace("-", "_")
    if problem:
        return problem
    if name.startswith("sideband-"):
        return f"{name!r} has the prefix that the template adds", f"try {_suggestion(name) or 'weather'}"
    if name == "sideband":
        return "'sideband' is the name of the runtime", "name what the package is for, such as weather"
    if keyword.iskeyword(module):
        what = "a keyword of Python"
    elif name in _TAKEN.split():
        what = "the name of a package, plugin or command of sideband"
    elif module in sys.stdlib_module_names:
        what = "the name of a module of the standard library"
    elif kind == "op" and module in _SKILL_NAMES:
        what = "a name of `sideband.skill`, which skills import"
    else:
        return None
    return f"{name!r} is {what}", f"try my-{name}"


def _project_problem(name: str) -> tuple[str, str] | None:
    """Return what is wrong with the name of a distribution's project."""
    problem = _shape_problem(name, "acme-agent")
    if problem:
        return problem
    if name == "sideband" or name.startswith("sideband-"):
        rest = name.removeprefix("sideband").strip("-")
        return f"{name!r} looks like a package of sideband", f"try {rest or 'acme'}-agent"
    return None


def _shape_problem(name: str, example: str) -> tuple[str, str] | None:
    if not _NAME.fullmatch(name):
        if any(sign in name for sign in "/\\") or name.startswith("."):
            what = "is a path"
        elif not name[0].isalpha():
            what = "does not begin with a letter"
        else:
            what = "is not lower-case words of a-z and 0-9 that are joined by single hyphens"
        return f"{name!r} {what}", f"try {_suggestion(name) or example}"
    if len(name) > _LONGEST_NAME:
        return f"{name!r} has {len(name)} characters", f"use at most {_LONGEST_NAME} characters"
    return None


def _suggestion(name: str) -> str | None:
    """Return the valid name that is most like this one."""
    decomposed = unicodedata.normalize("NFKD", name)
    plain = "".join(one for one in decomposed if not unicodedata.combining(one))
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", plain).lower())
    words = re.sub(r"^(sideband-)+|^[^a-z]+|-+$", "", words)
    if words in _TAKEN.split() or words in sys.stdlib_module_names or keyword.iskeyword(words):
        words = f"my-{words}"
    words = words[:_LONGEST_NAME].strip("-")
    return words if _NAME.fullmatch(words) else None
