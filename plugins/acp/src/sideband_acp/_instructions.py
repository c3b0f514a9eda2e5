"""The question whether the agent follows the instruction files of the folder, such as AGENTS.md.

An answer is about exactly the content that was shown: it is stored with the digest of these bytes, as at a terminal.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from acp.schema import PermissionOption
from sideband.errors import SidebandError
from sideband.rendering import render
from sideband.settings import trusted_project
from sideband_project_instructions import Answers, Instructions, known_instructions, question_lines

from ._own_questions import OwnQuestion, OwnQuestions

if TYPE_CHECKING:
    from sideband import Host

_USE, _REFUSE, _LATER = "use", "refuse", "later"
_OPTIONS = (
    PermissionOption(option_id=_USE, name="Use these instructions", kind="allow_always"),
    PermissionOption(option_id=_REFUSE, name="Never use them", kind="reject_always"),
    PermissionOption(option_id=_LATER, name="Not now", kind="reject_once"),
)
_NOT_USED = "They are not used in this session. You are asked again in the next one."
_RESULTS = {
    _USE: "The agent follows them, until they change.",
    _REFUSE: "They are not used, until they change. `sideband instructions forget FILE` takes this back.",
    _LATER: _NOT_USED,
    "": _NOT_USED,
}
_log = logging.getLogger("sideband.acp")


async def ask_about_instructions(host: Host, folder: Path, questions: OwnQuestions) -> None:
    """Ask whether the instruction files of a folder are used, unless the user has answered that.

    The answer holds until a file changes.

    Args:
        host: the host of the agent.
        folder: the working directory of the session.
        questions: asks the user.
    """
    if not any(one.kind == "hook" and one.name == "prompt" and one.state.usable for one in host.plugins.records):
        return  # what reads the files is not in use
    found = known_instructions(folder, trusted_project(host.home, folder), host.home)
    if not found.unanswered:
        return
    answers = Answers(host.home)
    question = _question(found, answers)
    answer = _LATER if question.is_too_long else await questions.ask(question)
    if answer in (_USE, _REFUSE):
        try:
            answers.remember(found.unanswered, use=answer == _USE)
        except SidebandError as error:
            _log.warning("the instructions of the project are not used: %s", error.message)
    elif answer != _LATER or question.is_too_long:
        names = ", ".join(render(str(file.path)) for file in found.unanswered)
        _log.warning("ignored %s: not accepted; run `sideband chat` in this folder at a terminal to be asked", names)


def _question(found: Instructions, answers: Answers) -> OwnQuestion:
    overview, whole = (_text(question_lines(found, answers, whole=whole)) for whole in (False, True))
    texts = [overview] if overview == whole else [overview, whole]
    count = len(found.unanswered)
    which = "the instructions" if count == 1 else f"the {count} files with instructions"
    title = f"Follow {which} of this project?"
    return OwnQuestion(title, texts, _OPTIONS, "other", _RESULTS)


def _text(lines: list[str]) -> str:
    return "\n".join(map(render, lines))  # no name of a file can imitate another line
