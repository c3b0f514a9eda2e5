"""The typed parts of an op family's SDK, which only editors and type checkers read."""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from attrs import frozen

from ._sdk_functions import full_doc, function_name, parameters_of, signature
from ._sdk_schemas import params_schema, result_schema
from ._sdk_types import Annotator, TypedDicts, camel_case, docstring
from ._spec import OpFamily, OpSpec

_USED = frozenset({"Any", "Literal", "NotRequired", "TypedDict"})


@frozen
class StubParts:
    """The typed dictionaries and the functions of a stub."""

    types: TypedDicts
    functions: tuple[str, ...]


def stub_parts(family: OpFamily, shadowed: frozenset[str], extra: Iterable[str]) -> StubParts:
    """Return the parts of the stub of a family.

    Args:
        family: the family.
        shadowed: the builtins that its functions hide.
        extra: the names of the family's own SDK module, which replace functions.
    """
    functions = {function_name(spec) for spec in family.public_ops}
    errors = {error.__name__ for error in family.errors}
    options = {spec.name: f"{camel_case(spec.verb)}Options" for spec in family.public_ops}
    taken = {*dir(builtins), *_USED, *functions, *errors, *extra, *options.values()}
    types = TypedDicts(taken)
    # Results first, since more code names them: a parameter of the same model may have other optional keys.
    returns = {spec.name: _returns(spec, types, shadowed) for spec in family.public_ops}
    types.of_parameters = True
    sources = []
    for spec in family.public_ops:
        schema = params_schema(spec)
        annotator = Annotator(schema.get("$defs", {}), shadowed, types)
        parameters = parameters_of(spec, annotator, schema)
        optional = {one.name: one.annotation for one in parameters if not one.required}
        if optional and options[spec.name] not in errors.union(extra):
            types.add(options[spec.name], optional, f"The optional arguments of `{function_name(spec)}`.")
        if function_name(spec) not in extra:
            first = signature(function_name(spec), parameters, returns[spec.name], stub=True)
            sources.append("\n".join([first, docstring(full_doc(spec, parameters), indent="    "), "    ..."]))
    return StubParts(types, tuple(sources))


def _returns(spec: OpSpec, types: TypedDicts, shadowed: frozenset[str]) -> str:
    if spec.fire_and_forget:
        return "None"
    schema = result_schema(spec)
    name = getattr(spec.result, "__name__", "")
    titled = {**schema, "title": name} if name and schema.get("properties") else schema
    return Annotator(schema.get("$defs", {}), shadowed, types).write(titled)
