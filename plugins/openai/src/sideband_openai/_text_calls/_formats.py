"""The formats of calls, in the order in which they are tried at a position."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import frozen

from ._calls import END_OF_TURN, NAME, OfferedTools, ParsedCalls, UnusableCall
from ._json_calls import json_calls, parse_bare
from ._named_json import named_json
from ._nested_tags import MARK, parse_nested
from ._pythonic import parse_answer, python_calls
from ._regions import FENCE, THOUGHT, parse_block, skip_thought
from ._tagged_values import TaggedValues


@frozen(eq=False)
class TextFormat:
    """A format.

    Attributes:
        marker: a text that every opening contains; may be empty. Formats without theirs in the text are skipped.
        opening: the beginning of a call.
        parse: parses what begins with the opening.
        ends_answer: whether only whitespace may follow, because the format is also used to show an example.
    """

    marker: str
    opening: re.Pattern[str]
    parse: Callable[[str, re.Match[str], OfferedTools], ParsedCalls]
    ends_answer: bool = False


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


_KEY = r"[^<>\"\n]{1,128}"
_JSON = r"(?=\{|\[\s*+[\[{])"
_CALLS = r"(?=\[?\s*+[A-Za-z_])"


def _closing(tag: str) -> re.Pattern[str]:
    """Return the pattern of a closing tag, which may be missing at the end of the text or before a stop token."""
    return _pattern(rf"\s*+(?:{tag}|\Z|(?={END_OF_TURN}))")


_UNCLOSED = _closing("(?!)")

# DeepSeek. Some servers replace the special characters of its tokens.
_BAR, _GAP = r"[|\uff5c]", r"[ ▁_]"
_SEPARATOR = rf"<{_BAR}tool{_GAP}sep{_BAR}>"
_DEEPSEEK_CALLS, _DEEPSEEK_CALL = rf"tool{_GAP}calls{_GAP}", rf"tool{_GAP}call{_GAP}"

# MiniMax M2 and DeepSeek V3.2 differ in the prefix of their tags.
_PREFIX = r"(?:[|\uff5c‖]{1,2}DSML[|\uff5c‖]{1,2}\s?|minimax:)?"
_BLOCK = rf"{_PREFIX}(?:function_calls|tool_calls|tool_call|calls)"
_INVOKE = rf"(?:<{_BLOCK}>\s*+)?<{_PREFIX}invoke\s+name=\"{NAME}\"\s*>"
_INVOKE_END = rf"\s*+</{_PREFIX}invoke>(?:\s*+</{_BLOCK}>)?"

_QWEN = TaggedValues(
    argument=_pattern(rf"\s*+<parameter=(?P<key>{_KEY})>\n?"),
    value_end=_pattern(r"\n?</parameter>(?=\s*+(?:<parameter=|</function>))"),
    call_end=_pattern(r"\s*+</function>(?:\s*+</tool_call>)?"),
)
_GLM = TaggedValues(
    argument=_pattern(rf"\s*+<arg_key>(?P<key>{_KEY})</arg_key>\s*+<arg_value>"),
    value_end=_pattern(r"</arg_value>(?=\s*+(?:<arg_key>|</tool_call>))"),
    call_end=_pattern(r"\s*+</tool_call>"),
)
_INVOKED = TaggedValues(
    argument=_pattern(
        rf"\s*+<{_PREFIX}parameter\s+name=\"(?P<key>{_KEY})\"(?:\s+string=\"(?P<string>true|false)\")?\s*>"
    ),
    value_end=_pattern(rf"</{_PREFIX}parameter>(?=\s*+(?:<{_PREFIX}parameter\s|</{_PREFIX}invoke>))"),
    call_end=_pattern(_INVOKE_END),
)
_KIMI_K3 = TaggedValues(
    argument=_pattern(rf"\s*+<\|open\|>argument\s+key=\"(?P<key>{_KEY})\"(?:\s+type=\"(?P<type>\w+)\")?\s*<\|sep\|>"),
    value_end=_pattern(r"<\|close\|>argument<\|sep\|>(?=\s*+(?:<\|open\|>argument\s|<\|close\|>call))"),
    call_end=_pattern(r"\s*+<\|close\|>call<\|sep\|>(?:\s*+<\|close\|>tools<\|sep\|>)?"),
)

_OTHER = _pattern(
    r"<tool_call>(?!\s*+<tool_call>)|<function=|<minimax:tool_call>|\[TOOL_CALLS\]|<TOOLCALL>"
    r"|<\|(?:tool_call_begin|tool_call_start|tool_call|python_start)\|>|<\|open\|>call\s"
    rf"|<{_PREFIX}invoke\s|<{_BAR}{_DEEPSEEK_CALL}begin{_BAR}>|{re.escape(MARK)}\s*+<(?:tool_call|invoke)"
)


def _refuse(_text: str, _opening: re.Match[str], _tools: OfferedTools) -> ParsedCalls:
    """Refuse what is in none of the formats although it begins like a call."""
    raise UnusableCall


FORMATS = (
    TextFormat("think", THOUGHT, skip_thought),
    TextFormat("THINK", THOUGHT, skip_thought),
    # Blocks of code, which are calls of many small models if they contain nothing else.
    TextFormat("```", FENCE, parse_block, ends_answer=True),
    TextFormat("~~~", FENCE, parse_block, ends_answer=True),
    # Qwen3-Coder
    TextFormat("<function=", _pattern(rf"(?:<tool_call>\s*+)?<function={NAME}>(?!\s*+\{{)"), _QWEN.parse),
    # Llama 3
    TextFormat("<function=", _pattern(rf"<function={NAME}>\s*+(?=\{{)"), named_json(_closing("</function>"))),
    # GLM 4.5 and later
    TextFormat("<tool_call>", _pattern(rf"<tool_call>\s*+{NAME}\s*+(?=<arg_key>|</tool_call>)"), _GLM.parse),
    # Hermes, Qwen 2.5 and 3
    TextFormat(
        "<tool_call>",
        _pattern(r"<tool_call>\s*+(?:```(?:json)?\s*+)?(?=[\[{])"),
        json_calls(_closing(r"(?:```\s*+)?</tool_call>|```\s*+\Z")),
    ),
    # MiniMax M1
    TextFormat("<tool_calls>", _pattern(rf"<tool_calls>\s*+{_JSON}"), json_calls(_closing("</tool_calls>"))),
    # MiniMax M2 and DeepSeek V3.2, with values in tags or in JSON
    TextFormat("invoke", _pattern(rf"{_INVOKE}(?!\s*+\{{)"), _INVOKED.parse),
    TextFormat("invoke", _pattern(rf"{_INVOKE}\s*+(?=\{{)"), named_json(_pattern(_INVOKE_END))),
    # MiniMax M3
    TextFormat(
        MARK,
        _pattern(rf"(?:{re.escape(MARK)}\s*+<tool_call>\s*+)?{re.escape(MARK)}\s*+<invoke\s+name=\"{NAME}\"\s*>"),
        parse_nested,
    ),
    # DeepSeek R1, V3 and V3.1
    TextFormat(
        "sep",
        _pattern(
            rf"(?:<{_BAR}{_DEEPSEEK_CALLS}begin{_BAR}>\s*+)?<{_BAR}{_DEEPSEEK_CALL}begin{_BAR}>\s*+"
            rf"(?:function{_SEPARATOR})?{NAME}(?:{_SEPARATOR})?\s*+(?:```(?:json)?\s*+)?(?=\{{)"
        ),
        named_json(
            _closing(rf"(?:```)?\s*+<{_BAR}{_DEEPSEEK_CALL}end{_BAR}>(?:\s*+<{_BAR}{_DEEPSEEK_CALLS}end{_BAR}>)?")
        ),
    ),
    # Kimi K2
    TextFormat(
        "<|tool_call_argument_begin|>",
        _pattern(
            r"(?:<\|tool_calls_section_begin\|>\s*+)?<\|tool_call_begin\|>\s*+(?:functions\.)?"
            rf"{NAME}(?::\d{{1,9}})?\s*+<\|tool_call_argument_begin\|>\s*+(?=\{{)"
        ),
        named_json(_closing(r"<\|tool_call_end\|>(?:\s*+<\|tool_calls_section_end\|>)?")),
    ),
    # Kimi K3
    TextFormat(
        "<|open|>call",
        _pattern(
            rf"(?:<\|open\|>tools<\|sep\|>\s*+)?<\|open\|>call\s+tool=\"{NAME}\"(?:\s+index=\"\d{{1,9}}\")?\s*<\|sep\|>"
        ),
        _KIMI_K3.parse,
    ),
    # Mistral
    TextFormat("[TOOL_CALLS]", _pattern(rf"\[TOOL_CALLS\]\s*+{_JSON}"), json_calls(_UNCLOSED)),
    TextFormat(
        "[TOOL_CALLS]",
        _pattern(rf"\[TOOL_CALLS\]\s*+{NAME}\s*+(?:\[ARGS\])?\s*+(?=\{{)"),
        named_json(_pattern("")),
    ),
    # Granite and Nemotron
    TextFormat("<|tool_call|>", _pattern(rf"<\|tool_call\|>\s*+{_JSON}"), json_calls(_closing(r"<\|/tool_call\|>"))),
    TextFormat("<TOOLCALL>", _pattern(rf"<TOOLCALL>\s*+{_JSON}"), json_calls(_closing("</TOOLCALL>"))),
    # Llama 3 and 4, LFM2
    TextFormat("<|python_tag|>", _pattern(rf"<\|python_tag\|>\s*+{_JSON}"), json_calls(_UNCLOSED)),
    TextFormat("<|python_tag|>", _pattern(rf"<\|python_tag\|>\s*+{_CALLS}"), python_calls(_UNCLOSED)),
    TextFormat(
        "<|python_start|>", _pattern(rf"<\|python_start\|>\s*+{_CALLS}"), python_calls(_closing(r"<\|python_end\|>"))
    ),
    TextFormat(
        "<|tool_call_start|>",
        _pattern(rf"<\|tool_call_start\|>\s*+{_JSON}"),
        json_calls(_closing(r"<\|tool_call_end\|>")),
    ),
    TextFormat(
        "<|tool_call_start|>",
        _pattern(rf"<\|tool_call_start\|>\s*+{_CALLS}"),
        python_calls(_closing(r"<\|tool_call_end\|>")),
    ),
    # An answer that is nothing but calls, and JSON on lines of its own
    TextFormat("(", _pattern(r"(?:\A|(?<=</think>))\s*+(?=\[\s*+[A-Za-z_][\w.]*+\(|[A-Za-z_][\w.]*+\()"), parse_answer),
    TextFormat("{", re.compile(r"(?:\A\s*+|^)(?=[\[{])", re.MULTILINE), parse_bare),
    TextFormat("", _OTHER, _refuse),
)
