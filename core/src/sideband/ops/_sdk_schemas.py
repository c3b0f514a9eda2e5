"""The JSON schemas of an op's parameters and result, from which the SDK is generated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from ._spec import OpSpec


class _SdkSchema(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Ignore the warning. A default that is not JSON is shown as `...`; the op's author need not change it."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Return whether a field is always present. In a result, a field with a default is."""
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return not (field.get("serialization_exclude") or field.get("serialization_exclude_if"))
        return super().field_is_required(field, total)


def params_schema(spec: OpSpec) -> Mapping[str, Any]:
    """Return the schema of the parameters. Of types without a schema, only the names are known."""
    try:
        schema = spec.params.model_json_schema(schema_generator=_SdkSchema)
    except PydanticInvalidForJsonSchema:
        # Types without a JSON schema, such as callables or custom classes: only the names are known.
        fields = {name: one for name, one in spec.params.model_fields.items() if name not in spec.from_host}
        return {
            "properties": {field.alias or name: {} for name, field in fields.items()},
            "required": [field.alias or name for name, field in fields.items() if field.is_required()],
        }
    if "$ref" in schema:
        # The schema of a recursive model is a reference.
        return {**schema["$defs"][schema["$ref"].rpartition("/")[2]], "$defs": schema["$defs"]}
    return schema


def result_schema(spec: OpSpec) -> Mapping[str, Any]:
    """Return the schema of the result, or an empty one if its type has no schema."""
    try:
        return TypeAdapter(spec.result).json_schema(mode="serialization", schema_generator=_SdkSchema)
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError):
        return {}
