"""The base of the parameters of ops."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["OpParams"]


class OpParams(BaseModel):
    """Parameters of an op: unknown ones are refused, none is changed, and no value stands in an error.

    An op takes any pydantic model. This base has the configuration that is safe for values that a skill sends.

    Example:
        >>> class GreetParams(OpParams):
        ...     name: str
        >>> GreetParams(name="Ada").name
        'Ada'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
