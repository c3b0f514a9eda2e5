"""The page on ops: all ops of the default distribution, by family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sideband.ops import OpFamily, OpSpec

from .docstrings import first_paragraph, section
from .levels import rule_text
from .packages import plugin_points
from .tables import paragraph, table

__all__ = ["ops_page"]

_EGRESS = {True: "yes", False: "no", None: "not declared, so guards see yes", "parameters": "depends on the parameters"}


def ops_page() -> list[str]:
    """Return the lines of the page."""
    lines = [
        "# Ops",
        "",
        *paragraph(
            "The ops that skills can call. `sideband ops show NAME` also prints the JSON Schemas. *Preview* shows an "
            "effect before it happens, *reconciliation* finds out after a crash whether it happened, and *undo* "
            "reverts it. An op *leaves the machine* if it may send data to another one itself; guards see this as "
            "`egress`."
        ),
    ]
    for family in sorted(_families(), key=lambda family: family.name):
        lines += ["", f"## {family.name}", "", family.doc]
        if family.scope is not None:
            fields = ", ".join(f"`{name}`" for name in family.scope.field_names())
            lines += ["", f"Fields of the capability `{family.name}`: {fields}."]
        if family.errors:
            names = ", ".join(f"`{error.__name__}` (`{error.code}`)" for error in family.errors)
            lines += ["", *paragraph(f"Errors that skills can catch by class: {names}.")]
        for spec in family.ops:
            lines += ["", *_op(spec)]
    return lines


def _families() -> Iterator[OpFamily]:
    for entry_point in plugin_points("sideband.v1.op"):
        yield entry_point.load().sideband_ops()


def _op(spec: OpSpec) -> Iterator[str]:
    lower = f" (or lower: {'; '.join(map(rule_text, spec.lower))})" if spec.lower else ""
    traits = [f"{spec.level.name.lower()}{lower}", "idempotent" if spec.idempotent else "not idempotent"]
    traits += ["recorded on disk before it runs"] if spec.durable else []
    traits += ["fire-and-forget"] if spec.fire_and_forget else []
    traits += ["internal: skills cannot dispatch it"] if spec.internal else []
    required = f"`{spec.requires}`" if spec.requires else "none"
    yield f"### {spec.name}"
    yield ""
    yield first_paragraph(spec.doc)
    yield ""
    yield f"Level and properties: {', '.join(traits)}. Required capability: {required}."
    yield f"Leaves the machine: {_EGRESS['parameters' if callable(spec.egress) else spec.egress]}."
    abilities = {"Preview": spec.preview, "Reconciliation": spec.reconcile, "Undo": spec.undo}
    yield ""
    yield " ".join(f"{name}: {'yes' if function else 'no'}." for name, function in abilities.items())
    schema = spec.params.model_json_schema()
    if schema.get("properties"):
        mandatory = set(schema.get("required", ()))
        yield ""
        yield from table(
            ["parameter", "type", "default", "meaning"],
            [
                [
                    f"`{name}`",
                    _type(field),
                    "required" if name in mandatory else f"`{field.get('default')!r}`",
                    str(field.get("description", "")),
                ]
                for name, field in schema["properties"].items()
            ],
        )
    about = section(spec.doc, "Args").get("params")
    if about and schema.get("properties"):
        yield ""
        yield from paragraph(about[0].upper() + about[1:])
    errors = section(spec.doc, "Raises")
    if errors:
        yield ""
        yield from [f"- `{name}`: {meaning}" for name, meaning in errors.items()]


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(one) for one in field["anyOf"]))
    if field.get("format") == "binary":
        return "bytes"
    return str(field.get("type") or field.get("$ref", "any").rpartition("/")[2])
