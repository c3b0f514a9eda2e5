"""The base class of op parameters."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["OpParams"]


class OpParams(BaseModel):
    """Base class of op parameters: frozen, rejects unknown fields, and keeps values out of error messages.

    An op accepts any pydantic model. This base class has a safe configuration for untrusted values from skills.

    Example:
        >>> class GreetParams(OpParams):
        ...     name: str
        >>> GreetParams(name="Ada").name
        'Ada'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


# Models of ops are built where they are declared, so that a mistake is reported there. Only this one, which is never
# validated, is not.
OpParams.model_config["defer_build"] = False
