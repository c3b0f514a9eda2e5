"""Count, shorten and hash the values of parameters and results."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json, to_jsonable_python

from ..errors import safe_text
from ..hooks._frozen import FrozenDict, freeze
from ..ledger import EffectRecord, Intent
from ..models._pieces import CarryingModel, CarryingTuple, canonical_json
from ..ops import OpParamsInvalid, OpResultInvalid, OpSpec, Recorded
from ._errors import validation_problems
from ._placeholder import placeholder
from ._redaction import Redaction, Unserializable

PLAIN = Redaction()
"""A redaction without secrets. It converts results of ops that reveal a secret to their caller to plain data."""

_SINGLE = frozenset({str, int, float, bool, bytes, type(None)})
# `dict` first, because checks against an abstract class are slow.
_MAPPINGS: tuple[type[Mapping[Any, Any]], ...] = (dict, Mapping)
_LISTS: tuple[type[Sequence[Any]], ...] = (list, tuple)
_SHORT = frozenset({int, float, bool, type(None)})
_MAX_TEXT = 500
_MAX_LIST = 50


def parse_params(spec: OpSpec, params: Mapping[str, Any]) -> BaseModel:
    """Return validated parameters of an op.

    Raises:
        OpParamsInvalid: if they are invalid; it names each problem.
    """
    try:
        return spec.params.model_validate(params)
    except ValidationError as error:
        known = [name for name in spec.params.model_fields if name not in spec.from_host]
        problems = validation_problems(error, known=known, shown=spec.record)
        raise OpParamsInvalid(spec.name, problems) from None


def has_at_most(most: int, values: Any) -> bool:
    """Return whether ``values`` has at most ``most`` values at any depth. Counting stops above the limit."""
    count, waiting = 0, [values]
    while waiting and count <= most:
        value = waiting.pop()
        inner: Collection[Any] = ()
        if isinstance(value, _MAPPINGS):
            inner = value.values()
        elif isinstance(value, _LISTS):
            inner = value
        count += len(inner)
        if count <= most and (kinds := _kinds(inner) - _SINGLE):
            nested = {kind for kind in kinds if issubclass(kind, _MAPPINGS + _LISTS)}
            waiting += [one for one in inner if type(one) in nested] if nested else ()
    return count <= most


def _kinds(values: Collection[Any]) -> frozenset[type]:
    return values.kinds if isinstance(values, CarryingTuple) else frozenset(map(type, values))


def shortened(value: Any) -> Any:
    """Return ``value`` for the ledger: long strings and lists truncated, bytes replaced by their size."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else value[:_MAX_TEXT] + "…"
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, dict):
        return {shortened(key): item if type(item) in _SHORT else shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value[:_MAX_LIST]] + (["…"] if len(value) > _MAX_LIST else [])
    return value


def recordable(redactor: Redaction, params: Mapping[str, Any], allowed: Iterable[str]) -> dict[str, Any]:
    """Return the recordable parameters: those in ``allowed`` redacted and shortened, of the others only the names."""
    shown = {name: params[name] for name in allowed if name in params}
    hidden: dict[str, str] = {}
    if len(shown) < len(params):
        hidden = dict.fromkeys((redactor.text(str(name))[:40] for name in params if name not in shown), "…")
    try:
        return {**hidden, **shortened(redactor.data(shown))}
    except Unserializable:
        return dict.fromkeys([*hidden, *shown], "…")


def reported(spec: OpSpec, result: Any) -> dict[str, Any]:
    """Return the fields of a redacted result that observers of the effect get, shortened as in the ledger."""
    found = result if spec.reports and isinstance(result, Mapping) else {}
    return {name: shortened(found[name]) for name in spec.reports if name in found}


def recorded_of(record: Intent) -> Recorded:
    """Return what the functions of an op's spec get of the record of an effect."""
    return Recorded(
        effect=record.effect,
        op=record.op,
        params=record.params,
        key=record.key,
        note=record.note,
        status=record.status if isinstance(record, EffectRecord) else None,
        result=record.result if isinstance(record, EffectRecord) else None,
        time=record.time,
    )


def secret_fields(params: BaseModel) -> set[str]:
    """Return the names of the parameters that are declared as secrets."""
    return {name for name, one in type(params).model_fields.items() if not one.repr}


def passed_data(params: BaseModel, without: frozenset[str]) -> dict[str, Any]:
    """Return the parameters that were passed, except those in ``without``, as JSON data with placeholders for secrets.

    Parameters declared with ``repr=False`` are secrets.
    """
    hidden, passed = secret_fields(params), params.model_fields_set
    found = params.model_dump(include=passed - hidden - without, exclude_none=True)
    plain = to_jsonable_python(found, bytes_mode="base64", inf_nan_mode="strings")
    return {**plain, **dict.fromkeys(hidden & passed, placeholder())}


def digest_of(params: BaseModel, without: frozenset[str] = frozenset()) -> str:
    """Return a digest of validated parameters, except those in ``without``. Equal parameters have equal digests.

    Parameters declared with ``repr=False`` are secrets. They are omitted, because digests are stored.
    """
    carried = _carried(params)
    hidden = secret_fields(params) | carried.keys() | without
    try:
        plain = to_jsonable_python(params, exclude=hidden, bytes_mode="base64", inf_nan_mode="constants")
    except UnicodeDecodeError:  # for the fields of models, the mode does not count
        found = params.model_dump(exclude=hidden)
        plain = [to_jsonable_python(found, bytes_mode="base64", inf_nan_mode="constants")]
    digest = hashlib.sha256(canonical_json(plain).encode())
    for name, value in carried.items():
        # A digest of digests, so that a conversation is not serialized again for each message that is added to it.
        digest.update(b"%b:%d:" % (name.encode(), len(value)) + value.digest)
    return digest.hexdigest()


def payload_of(params: BaseModel) -> Mapping[str, Any]:
    """Return the parameters that the caller passed, as immutable plain data.

    Messages and tools keep theirs, so that a conversation is not converted again for each message that is added.
    """
    carried = {name: value for name, value in _carried(params).items() if name in params.model_fields_set}
    rest = freeze(params.model_dump(exclude_unset=True, exclude=set(carried)))
    return FrozenDict({**rest, **{name: _payload(value) for name, value in carried.items()}})


def _payload(carrier: CarryingModel | CarryingTuple[Any]) -> Any:
    known = getattr(carrier, "_payload", None)
    if known is None:
        if isinstance(carrier, CarryingTuple):
            known = tuple(map(_payload, carrier))
        else:
            known = freeze(carrier.model_dump(exclude_unset=True))
        object.__setattr__(carrier, "_payload", known)
    return known


def _carried(params: BaseModel) -> dict[str, CarryingTuple[Any]]:
    """Return the parameters that are tuples of models that keep what was made of them."""
    return {
        name: value if isinstance(value, CarryingTuple) else CarryingTuple(value)
        for name, value in vars(params).items()
        if isinstance(value, tuple) and value and all(issubclass(kind, CarryingModel) for kind in _kinds(value))
    }


def plain_result(
    redactor: Redaction, spec: OpSpec, result: Any, plugin: str | None, package: str = ""
) -> tuple[Any, Any, int]:
    """Return the reply for the caller, the redacted result for the ledger, and the size of the reply as JSON.

    Raises:
        OpResultInvalid: if the result does not match the op, or is not JSON.
    """
    try:
        if type(result) is not spec.result:
            result = spec.result_adapter.validate_python(result)
        plain = spec.result_adapter.dump_python(result)
        redacted = redactor.data(plain, sensitive_keys=not spec.foreign_names)
        reply = PLAIN.data(plain, sensitive_keys=False) if spec.reveals else redacted
        return reply, redacted, len(to_json(reply, bytes_mode="base64"))
    except ValidationError as error:
        problems = validation_problems(error, whole="result")
    except Unserializable as error:
        problems = str(error)
    except (ValueError, RecursionError) as error:
        # A lone surrogate, or a list that is nested too deeply or recursive.
        problems = f"the result cannot be encoded as JSON: {safe_text(error)}"
    raise OpResultInvalid(spec.name, problems, plugin=plugin, package=package)
