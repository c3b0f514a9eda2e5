"""Forms of servers as questions. A form is flat: texts, numbers, choices, yes or no."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sideband.asking import QuestionOption, UserAnswer, UserQuestion

_MAX_FIELDS = 20
_MAX_OPTIONS = 50
_YES, _NO = "yes", "no"
_LONGEST = 2_000
_LARGEST = 1e300
_CUT = " […]"


class FormInvalid(Exception):
    """The answers do not fit the form. The message is for the person."""


def questions_of(form: Mapping[str, Any], text: str) -> list[UserQuestion]:
    """Return a question for each field of a form.

    Args:
        form: the JSON Schema of the form.
        text: what the server says, before the name of each field.

    Raises:
        FormInvalid: if it has no fields, or too many.
    """
    fields = dict(_fields(form))
    if not 1 <= len(fields) <= _MAX_FIELDS:
        raise FormInvalid(f"the form has {len(fields)} fields; 1 to {_MAX_FIELDS} are supported")
    return [
        UserQuestion(
            f"{text} — {shortened(_label(name, one))}", tuple(_options(one))[:_MAX_OPTIONS], one.get("type") == "array"
        )
        for name, one in fields.items()
    ]


def shortened(text: str) -> str:
    """Return a text of a server without its end, if it is longer than a person reads."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + _CUT


def values_of(form: Mapping[str, Any], answers: Sequence[UserAnswer]) -> dict[str, Any]:
    """Return the values of the fields. Fields that were left open get their default, if they have one.

    Raises:
        FormInvalid: if a value does not fit, or a required one is missing.
    """
    required = form.get("required")
    found: dict[str, Any] = {}
    for (name, one), answer in zip(_fields(form), answers, strict=True):
        if answer.chosen or answer.text:
            found[name] = _value(name, one, answer)
        elif "default" in one:
            found[name] = one["default"]
        elif isinstance(required, list) and name in required:
            raise FormInvalid(f"`{name}` is required")
    return found


def has_defaults(form: Mapping[str, Any]) -> bool:
    """Return whether a form can be sent as it is: it has defaults, and no required field without one."""
    fields = dict(_fields(form))
    required = form.get("required")
    named = required if isinstance(required, list) else []
    without = [name for name in named if "default" not in fields.get(name, {})]
    return not without and any("default" in one for one in fields.values())


def _fields(form: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = form.get("properties")
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(one, Mapping):
            yield name, one


def _label(name: str, one: Mapping[str, Any]) -> str:
    parts = [str(one.get("title") or name), *([str(one["description"])] if one.get("description") else [])]
    default = f" (default: {one['default']})" if "default" in one else ""
    return ": ".join(parts) + default


def _options(one: Mapping[str, Any]) -> Iterator[QuestionOption]:
    if one.get("type") == "boolean":
        yield QuestionOption(_YES)
        yield QuestionOption(_NO)
        return
    for value, title in _choices(one):
        yield QuestionOption(value, shortened(title))


def _choices(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each choice with its title, in all forms that versions of the protocol have for them."""
    items = one.get("items")
    where = items if one.get("type") == "array" and isinstance(items, Mapping) else one
    titles = _list(where.get("enumNames"))
    for number, value in enumerate(_list(where.get("enum"))):
        yield str(value), str(titles[number]) if number < len(titles) else ""
    for choice in [*_list(where.get("oneOf")), *_list(where.get("anyOf"))]:
        if isinstance(choice, Mapping) and "const" in choice:
            yield str(choice["const"]), str(choice.get("title", ""))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _value(name: str, one: Mapping[str, Any], answer: UserAnswer) -> Any:
    text = answer.text or (answer.chosen[0] if answer.chosen else "")
    choices = [value for value, _ in _choices(one)]
    match one.get("type"):
        case "boolean" if text in (_YES, _NO):
            return text == _YES
        case "integer" | "number" as kind:
            return _number(name, one, text, whole=kind == "integer")
        case "array":
            values = list(answer.chosen) or [text]
            if all(value in choices for value in values):
                return values
        case "string" if not choices or text in choices:
            return _text(name, one, text)
    raise FormInvalid(f"`{name}` must be one of {', '.join(choices or [_YES, _NO])}")


def _number(name: str, one: Mapping[str, Any], text: str, *, whole: bool) -> float:
    try:
        value: float = int(text) if whole else float(text)
    except ValueError:
        raise FormInvalid(f"`{name}` must be a {'whole ' if whole else ''}number") from None
    low, high = one.get("minimum"), one.get("maximum")
    is_low = isinstance(low, int | float) and value < low
    is_high = isinstance(high, int | float) and value > high
    if is_low or is_high or not -_LARGEST <= value <= _LARGEST:
        raise FormInvalid(f"`{name}` must be a number{_limits(low, high)}")
    return value


def _limits(low: Any, high: Any) -> str:
    return (f" of at least {low}" if low is not None else "") + (f" and at most {high}" if high is not None else "")


def _text(name: str, one: Mapping[str, Any], text: str) -> str:
    short, long = one.get("minLength"), one.get("maxLength")
    if (isinstance(short, int) and len(text) < short) or (isinstance(long, int) and len(text) > long):
        raise FormInvalid(f"`{name}` must have {short or 0} to {long or 'any number of'} characters")
    return text
