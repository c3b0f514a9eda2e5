"""Checks of what an op declares about its parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

from pydantic import ValidationError
from sideband.ops import OpSpec

from ._base import CANARY
from ._failing import fail
from ._schemas import check_instance


def check_params(label: str, spec: OpSpec, params: Mapping[str, Any]) -> None:
    """Check that parameters are the same after they were written as JSON and read."""
    model = spec.params.model_validate(params)
    data = model.model_dump(mode="python", exclude_unset=True)
    again = spec.params.model_validate(json.loads(json.dumps(data)) if _is_json(data) else data)
    if again != model:
        fail(
            label,
            expected=f"the parameters of `{spec.name}` are the same after they were written as JSON and read",
            happened=f"{model!r} became {again!r}",
            remedy="use types that JSON has, or validators and serializers that are inverse to each other",
        )
    check_instance(label, f"the parameters of `{spec.name}`", params, spec.params.model_json_schema())


def check_unknown(label: str, spec: OpSpec, valid: Mapping[str, Any]) -> None:
    """Check that unknown parameters are refused.

    Args:
        label: the plugin, for messages.
        spec: the op.
        valid: valid parameters, if any are known.
    """
    if not valid and any(one.is_required() for one in spec.params.model_fields.values()):
        return
    try:
        spec.params.model_validate({**valid, "sideband_unknown": 1})
    except ValidationError:
        return
    fail(
        label,
        expected=f"`{spec.name}` refuses unknown parameters, so that a misspelled one is noticed",
        happened="it ignores them",
        remedy='derive its parameters from `sideband.ops.OpParams`, or set `extra="forbid"`',
    )


def check_repr(label: str, spec: OpSpec, name: str) -> None:
    """Check that a secret parameter is neither shown nor recorded."""
    if not _holds_text(spec.params.model_fields[name].annotation):
        return  # a number, such as `max_tokens`
    shown = repr(spec.params.model_construct(None, **{name: CANARY}))
    if CANARY in shown:
        fail(
            label,
            expected=f"`repr` of the parameters of `{spec.name}` shows no secret: logs and errors contain it",
            happened=f"it shows the value of `{name}`",
            remedy=f"declare `{name}: SecretStr`, or `{name}: str = Field(repr=False)`",
        )
    if name in spec.record:
        fail(
            label,
            expected=f"the ledger does not get the parameter `{name}` of `{spec.name}`",
            happened="it is in `record`",
            remedy="remove it from `record`",
        )


def _holds_text(annotation: Any) -> bool:
    """Return whether a value of a type may be something else than a number."""
    if arguments := get_args(annotation):
        return any(_holds_text(one) for one in arguments)
    return annotation not in (int, float, bool, NoneType)


def _is_json(data: Any) -> bool:
    """Return whether data can be JSON. Parameters may contain bytes too, which a host sends in another way."""
    try:
        json.dumps(data)
    except TypeError:
        return False
    return True
