"""The table ``[dist]``: the packages of a distribution, and where they come from."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from ._policy import Policy

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
# What is locked about these cannot be given up: it would not be a lock then.
_ALWAYS_LOCKED = frozenset({"deny", "only", "conflicts", "files", "guards", "strict"})


def _specifier(value: str) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415  for few files only

    try:
        return str(SpecifierSet("" if value == "*" else value))
    except InvalidSpecifier:
        raise ValueError(f'expected a version such as "~=1.2" or "==1.2.3", or "*" for any, got {value!r}') from None


def _line(value: str) -> str:
    """Return a text that cannot add a line, or an option, to a file of another tool."""
    if not value.isprintable() or value.startswith("-"):
        raise ValueError("expected one line of printable characters that begins with no `-`")
    return value


def _index(value: str) -> str:
    if any(one.isspace() for one in _line(value)) and "://" in value:
        raise ValueError("a URL has no spaces")
    if "://" in value and "@" in urlsplit(value).netloc:
        # The value must not be in this message.
        raise ValueError(
            "a URL with a user name or password would be in the lock and in exports: keep credentials outside, such as "
            "in `~/.netrc` or in the keyring of uv"
        )
    return value


class DistPackage(BaseModel):
    """One package of a distribution.

    Example:
        >>> DistPackage(version="~=0.1").version
        '~=0.1'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    version: str = Field(default="", description='the versions to choose from, such as "~=1.2"; by default any')
    extras: list[str] = Field(default_factory=list, description="the extras to install")
    path: str | None = Field(
        default=None, description="the folder of its source, or its wheel, relative to the file that sets it"
    )

    @field_validator("version")
    @classmethod
    def _valid_version(cls, value: str) -> str:
        return _specifier(value)

    @field_validator("extras")
    @classmethod
    def _valid_extras(cls, value: list[str]) -> list[str]:
        for one in value:
            if not _NAME.fullmatch(one):
                raise ValueError(f"{one!r} is not the name of an extra")
        return value

    @field_validator("path")
    @classmethod
    def _valid_path(cls, value: str | None) -> str | None:
        return None if value is None else _line(value)


def _version_as_package(value: Any) -> Any:
    return {"version": value} if isinstance(value, str) else value


_Package = Annotated[DistPackage, BeforeValidator(_version_as_package, json_schema_input_type=str | DistPackage)]


class DistSettings(BaseModel):
    """The table ``[dist]``. Only the commands ``sideband dist`` read it; hosts read the lock that is made from it.

    Example:
        >>> DistSettings(name="acme", packages={"sideband-http": "~=0.1"}).packages["sideband-http"].version
        '~=0.1'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str = Field(default="", description="the name of the distribution")
    core: str = Field(default="", description='the versions of sideband-core to choose from, such as "~=0.1"')
    python: str = Field(default=">=3.11", description="the versions of Python that it is locked for")
    packages: dict[str, _Package] = Field(
        default_factory=dict,
        description="the packages whose plugins may load: a version, or a table with `version`, `extras` and `path`",
    )
    indexes: list[str] = Field(
        default_factory=list,
        description="package indexes, as URLs or folders; a package is taken from the first one that has it",
    )
    default_index: bool = Field(
        default=True, description="whether the default index of uv is used for packages that no other index has"
    )
    wheels: list[str] = Field(
        default_factory=list, description="folders of wheels, relative to the file, used in addition to the indexes"
    )
    offline: bool = Field(default=False, description="whether only the folders in `wheels` are used")
    adjustable: list[str] = Field(
        default_factory=list,
        description="tables and keys that users may set although the environment is locked, such as `plugins.openai`",
    )

    @field_validator("core", "python")
    @classmethod
    def _valid_versions(cls, value: str) -> str:
        return _specifier(value)

    @field_validator("name")
    @classmethod
    def _valid_name(cls, value: str) -> str:
        if value and not _NAME.fullmatch(value):
            raise ValueError("expected letters, digits, `.`, `_` and `-`")
        return value

    @field_validator("indexes")
    @classmethod
    def _valid_indexes(cls, value: list[str]) -> list[str]:
        return [_index(one) for one in value]

    @field_validator("wheels")
    @classmethod
    def _valid_folders(cls, value: list[str]) -> list[str]:
        return [_line(one) for one in value]

    @field_validator("packages")
    @classmethod
    def _valid_names(cls, value: dict[str, DistPackage]) -> dict[str, DistPackage]:
        for name in value:
            if not _NAME.fullmatch(name):
                raise ValueError(f"`{name}` is not the name of a package")
        return value

    @field_validator("adjustable")
    @classmethod
    def _can_be_adjusted(cls, value: list[str]) -> list[str]:
        for one in value:
            section, _, key = one.partition(".")
            if section not in ("agent", "plugins", "grants", "policy") or (section == "policy" and not key):
                raise ValueError(
                    f"expected `agent`, `plugins`, `grants` or a key such as `policy.timeout`, got `{one}`"
                )
            if section == "policy" and key.partition(".")[0] not in Policy.model_fields.keys() - _ALWAYS_LOCKED:
                raise ValueError(f"`{one}` is always locked, or not a key of the policy")
        return value
