"""Checks of the arguments of ``@op`` and ``@tool``, so that a mistake is reported where it is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_type_hints

from pydantic import BaseModel

from ._levels import Level, Lower


def check_name(decorator: str, name: object) -> None:
    """Raise a ``TypeError`` if the name is not a text but, without parentheses, the decorated function."""
    if not isinstance(name, str):
        raise TypeError(f'`@{decorator}` needs a name, as in `@{decorator}("clock.now")`, got {name!r}')


def check_options(declared: str, level: object, timeout: object) -> None:
    """Check the options that ops and tools have in common.

    Args:
        declared: the object that is declared, for error messages.
        level, timeout: the options.

    Raises:
        TypeError: if an option is invalid.
    """
    if not isinstance(level, Level):
        raise TypeError(f"{declared}: `level` must be a Level such as Level.SAFE, got {level!r}")
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise TypeError(f"{declared}: `timeout` must be a positive number of seconds, got {timeout!r}")


def check_rules(declared: str, needs: object, lower: object) -> tuple[Lower, ...]:
    """Check the types of ``needs`` and ``lower`` of an op. Their fields are checked when its family registers.

    Args:
        declared: the object that is declared, for error messages.
        needs, lower: the options.

    Returns:
        The rules.

    Raises:
        TypeError: if an option is invalid.
    """
    if not isinstance(needs, Mapping):
        raise TypeError(f"{declared}: `needs` must map fields to values, such as `mode` to ('write',), got {needs!r}")
    rules = tuple(lower) if isinstance(lower, Iterable) else ()
    if not isinstance(lower, Iterable) or not all(isinstance(rule, Lower) for rule in rules):
        expected = "a list of rules such as Lower(Level.MONITORED, host=LIMITED)"
        raise TypeError(f"{declared}: `lower` must be {expected}, got {lower!r}")
    return rules


def check_function(declared: str, name: str, function: Any, *parameters: str, asynchronous: bool = True) -> None:
    """Check an optional function that is called later.

    Args:
        declared: the object that is declared, for error messages.
        name: the name of the option.
        function: the function, or ``None``.
        parameters: the positional arguments that it is called with.
        asynchronous: whether it must be ``async def``.

    Raises:
        TypeError: if it is not a function or has another signature.
    """
    if function is None:
        return
    try:
        inspect.signature(function).bind(*parameters)
        is_valid = inspect.iscoroutinefunction(function) == asynchronous
    except (TypeError, ValueError):
        is_valid = False
    if not is_valid:
        kind = "async def" if asynchronous else "def"
        raise TypeError(f"{declared}: `{name}` must be a function `{kind} {name}({', '.join(parameters)})`")


def check_computed(declared: str, name: str, function: Any) -> None:
    """Check a function that computes what an op declares from its parameters, or from them and the configuration.

    Args:
        declared: the object that is declared, for error messages.
        name: the name of the option.
        function: the function.

    Raises:
        TypeError: if it is not a synchronous function, or has another signature.
    """
    try:
        inspect.signature(function).bind(*("params", "config")[: 1 + takes_config(function)])
        is_valid = not inspect.iscoroutinefunction(function)
    except (TypeError, ValueError):
        is_valid = False
    if not is_valid:
        signatures = f"`def {name}(params)` or `def {name}(params, config)`"
        raise TypeError(f"{declared}: `{name}` must be a function {signatures}")


def check_fields(declared: str, name: str, fields: object, model: Any) -> tuple[str, ...]:
    """Return the names of fields that an option lists.

    Args:
        declared: the object that is declared, for error messages.
        name: the name of the option.
        fields: the option.
        model: the type that has the fields. They are checked if it is a model.

    Raises:
        TypeError: if it is not a list, or a field is unknown.
    """
    if isinstance(fields, str) or not isinstance(fields, Iterable):
        raise TypeError(f"{declared}: `{name}` must be a list of fields, got {fields!r}")
    listed = tuple(fields)
    known = model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else listed
    if unknown := sorted(set(listed) - set(known)):
        raise TypeError(f"{declared}: unknown fields of {model.__name__} in `{name}`: {', '.join(unknown)}")
    return listed


def takes_config(function: Any) -> bool:
    """Return whether the second positional parameter of a function is ``config``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:2]
    except (TypeError, ValueError):  # a callable without a signature, or not a callable
        return False
    return any(one.name == "config" and one.kind is not inspect.Parameter.KEYWORD_ONLY for one in parameters)


def params_model(declared: str, kind: str, function: Callable[..., Any]) -> type[BaseModel]:
    """Return the pydantic model of the parameters of an async function ``(params, ctx)``.

    Args:
        declared: the object that is declared, for error messages.
        kind: the role of the function, for error messages.
        function: the function.

    Raises:
        TypeError: if the function has another signature.
    """
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{declared}: its {kind} must be `async def`")
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) != 2:
        raise TypeError(f"{declared}: its {kind} must take (params, ctx), got ({', '.join(parameters)})")
    model = get_type_hints(function).get(parameters[0])
    if not (isinstance(model, type) and issubclass(model, BaseModel) and model is not BaseModel):
        raise TypeError(f"{declared}: annotate `{parameters[0]}` with a pydantic model, a subclass of BaseModel")
    return model
