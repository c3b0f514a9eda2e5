"""The schema of ``sideband.lock``."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from packaging.markers import InvalidMarker, Marker
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import models_json_schema
from sideband.settings import DistSettings, Settings

_SHA = r"^[0-9a-f]{64}$"
_HASHES = r"^([0-9a-f]{64}  [^\n]+\n)*$"
_WHEELS = r"^([0-9a-f]{64}  [A-Za-z0-9_.+!-]+\.whl\n)*$"
_Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]


class _LockTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DistLockPlugin(_LockTable):
    """A plugin that may load."""

    kind: str = Field(description="the kind, such as `op`")
    name: str = Field(description="the entry-point name")
    value: str = Field(description="the value of the entry point")
    api: int = Field(description="the version of the plugin API")
    package: str = Field(description="the normalized name of the package that provides it")
    order: int | None = Field(default=None, description="its position among the plugins that are imported at start")
    uses: list[str] = Field(default_factory=list, description="of an op family: the rights of its own that it declares")
    ops: dict[str, str] = Field(
        default_factory=dict, description="of an op family: the level of each op, and the capability that it requires"
    )


class DistLockPackage(_LockTable):
    """A package in its exact version."""

    name: _Name = Field(description="the normalized name")
    version: str = Field(pattern=r"^[A-Za-z0-9_.+!-]+$", description="the exact version")
    marker: str = Field(default="", description="the environments that it is for, as in requirements; empty for all")
    path: str = Field(default="", description="the source of a local package, relative to `sideband.toml`")
    requires: list[_Name] = Field(default_factory=list, description="the packages of the lock that it needs")
    wheels: str = Field(pattern=_WHEELS, description="the SHA-256 of each wheel, in lines such as those of sha256sum")
    files: str = Field(
        default="",
        pattern=_HASHES,
        description="the SHA-256 of each installed file, in the same form; empty if it is not for this platform",
    )

    @field_validator("marker")
    @classmethod
    def _valid_marker(cls, value: str) -> str:
        try:
            return value and str(Marker(value)) and value
        except InvalidMarker:
            raise ValueError("it is not a marker of requirements") from None

    def wheel_hashes(self) -> list[tuple[str, str]]:
        """Return the SHA-256 and the name of each wheel."""
        lines = (line.partition("  ") for line in self.wheels.splitlines())
        return [(digest, name) for digest, _, name in lines]


class DistLockTable(_LockTable):
    """What the lock takes over from ``[dist]``."""

    name: str = Field(default="", description="the name of the distribution")
    python: str = Field(default="", description="the versions of Python that it is locked for")
    indexes: list[str] = Field(default_factory=list, description="the package indexes of the team")
    default_index: bool = Field(default=True, description="whether the default index of uv is used too")
    wheels: list[str] = Field(default_factory=list, description="the folders of wheels of the team")
    offline: bool = Field(default=False, description="whether only these folders are used")
    adjustable: list[str] = Field(default_factory=list, description="tables and keys that users may set nevertheless")

    @model_validator(mode="after")
    def _is_that_of_a_distribution(self) -> Self:
        DistSettings.model_validate(self.model_dump())
        return self


class DistLock(_LockTable):
    """The schema of ``sideband.lock``, which ``sideband dist lock`` writes.

    Example:
        >>> DistLock(manifest="0" * 64, plugins=[], packages=[]).version
        1
    """

    version: Literal[1] = Field(default=1, description="the version of this format")
    manifest: str = Field(pattern=_SHA, description="the SHA-256 of the `sideband.toml` that was locked")
    dist: DistLockTable = Field(
        default_factory=DistLockTable, description="where it comes from, and what users may set"
    )
    settings: Settings = Field(
        default_factory=Settings, description="settings that other sources can only restrict, as in `sideband.toml`"
    )
    plugins: list[DistLockPlugin] = Field(description="the only plugins that load, sorted by kind and name")
    packages: list[DistLockPackage] = Field(description="all packages, sorted by name")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        known = {one.name for one in self.packages}
        needed = {one.package for one in self.plugins}.union(*(one.requires for one in self.packages))
        if missing := sorted(needed - known):
            raise ValueError(f"the package {missing[0]!r} is missing")
        return self

    def package(self, name: str) -> DistLockPackage | None:
        """Return the package of a normalized name that is for this platform, or ``None``."""
        return next((one for one in self.packages if one.name == name and one.files), None)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``sideband.toml`` and ``sideband.lock``.

    Example:
        >>> sorted(one["title"] for one in schema()["oneOf"])
        ['sideband.lock', 'sideband.toml']
    """
    _, found = models_json_schema([(Settings, "validation"), (DistLock, "validation")])
    definitions = found["$defs"]
    for definition in definitions.values():
        if "description" in definition:  # a docstring, of which the first sentence is for readers of the schema
            definition["description"] = definition["description"].partition("\n\n")[0].replace("``", "`")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sideband.toml and sideband.lock",
        "oneOf": [
            {"title": "sideband.toml", "$ref": "#/$defs/Settings"},
            {"title": "sideband.lock", "$ref": "#/$defs/DistLock"},
        ],
        "$defs": definitions,
    }
