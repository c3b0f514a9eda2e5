"""What plugins that serve a client share: claimed standard streams, messages as lines, and questions as forms."""

from ._claimed_streams import ClaimedStreams, claimed_streams
from ._forms import (
    Form,
    Unanswered,
    answers_of,
    approval_form,
    approval_of,
    questions_form,
    request_lines,
)
from ._lines import Lines, LineTooLong
from ._version import __version__

__all__ = [
    "ClaimedStreams",
    "Form",
    "LineTooLong",
    "Lines",
    "Unanswered",
    "__version__",
    "answers_of",
    "approval_form",
    "approval_of",
    "claimed_streams",
    "questions_form",
    "request_lines",
]
