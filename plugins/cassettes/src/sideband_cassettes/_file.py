"""The file of a cassette: JSON that people review, and that strangers may have written."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isinf
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, JsonValue, ValidationError, model_validator
from sideband.errors import StateUnwritable
from sideband.state import replace_file
from sideband.validation import problem_text

from ._errors import CassetteInvalid
from ._repeats import with_repeats, without_repeats
from ._text import compared, decoded

MOST_BYTES = 64 << 20
"""The maximum size of a cassette."""

_MOST_EFFECTS = 100_000
_LONGEST_SEARCHED = 1 << 20
_CONSTANTS = ("NaN", "Infinity", "-Infinity")
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _CassetteModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, defer_build=True)


class RecordedEffect(_CassetteModel):
    """One effect of a cassette. It has a result, an error, or neither if it was cancelled.

    Attributes:
        op: the name of the op.
        within: what requested it: the step of a run, and the call of a tool. Empty for a request of the user.
        ordinal: its number among the effects that are equal in op, parameters and ``within``.
        digest: the SHA-256 of the parameters.
        params: the parameters that were passed. Secrets and folders of the machine are replaced by their names.
        parts: the parts of the answer that were streamed.
        result: the result.
        error: the error, and the name of its class as ``type``.
    """

    op: str = Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$", max_length=200)
    within: str = Field(default="", max_length=1_000)
    ordinal: int = Field(ge=1)
    digest: _Digest
    params: JsonValue
    parts: list[dict[str, JsonValue]] = []
    result: JsonValue = None
    error: dict[str, JsonValue] | None = None

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled before it had an answer."""
        return self.error is None and "result" not in self.model_fields_set

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.error is not None and "result" in self.model_fields_set:
            raise ValueError("it has both a result and an error")
        for data in (self.parts, self.result, self.error):
            decoded(data)
        if digest_of(decoded(self.params)) != self.digest:
            raise ValueError("`digest` is not that of its parameters")
        return self


class CassetteFile(_CassetteModel):
    """The content of a cassette. ``CassetteFile.model_json_schema()`` is its JSON Schema.

    Attributes:
        version: the version of the format.
        checksum: the SHA-256 of the rest, which tells an edited or damaged file from a recorded one. It does not show
            who made the file.
        started: when the recording began, if a plugin asked for the time. It differs with each recording.
        effects: the effects, in the order in which they were requested; those of steps that ran at once, step by step.
    """

    version: Literal[1]
    checksum: _Digest
    started: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*[+-]\d\d:\d\d$")
    effects: Annotated[list[RecordedEffect], FailFast()] = Field(max_length=_MOST_EFFECTS)


def digest_of(params: Any) -> str:
    """Return the digest of parameters by which effects are compared."""
    return hashlib.sha256(json.dumps(compared(params), sort_keys=True, allow_nan=False).encode()).hexdigest()


def rendered(effects: Sequence[Mapping[str, Any]], started: str | None) -> bytes:
    """Return the content of a cassette."""
    document = {"effects": [*without_repeats(effects)], **({"started": started} if started else {}), "version": 1}
    whole = {"checksum": _checksum(document), **document}
    return f"{json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def write_cassette(path: Path, content: bytes) -> None:
    """Write a cassette atomically, unless it has this content already.

    Raises:
        StateUnwritable: if it cannot be written. The file is unchanged.
    """
    try:
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
        path.chmod(0o644)
    except OSError as error:
        raise StateUnwritable(path, error) from error


def read_cassette(path: Path) -> CassetteFile:
    """Read and check a cassette.

    Raises:
        CassetteInvalid: if it does not exist or is invalid. The message has the line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        hint = f"record it: `sideband record {path} COMMAND …`"
        raise CassetteInvalid(path, "the cassette does not exist", hint=hint) from None
    except OSError as error:
        raise CassetteInvalid(path, f"it cannot be read: {error.strerror or error}") from None
    if len(content) > MOST_BYTES:
        raise CassetteInvalid(path, f"it is larger than {MOST_BYTES >> 20} MiB")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise CassetteInvalid(path, "it is not UTF-8", line=content.count(b"\n", 0, error.start) + 1) from None
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
        whole = document
        if isinstance(document, dict) and isinstance(document.get("effects"), list):
            whole = {**document, "effects": with_repeats(document["effects"])}
        found = CassetteFile.model_validate(whole)
    except json.JSONDecodeError as error:
        raise CassetteInvalid(path, f"it is not JSON: {error.msg}", line=error.lineno) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise CassetteInvalid(path, f"`{where}`: {problem_text(first)}", line=_line(text, first["loc"])) from None
    except RecursionError:
        raise CassetteInvalid(path, "it is nested too deeply") from None
    except ValueError as error:
        raise CassetteInvalid(path, str(error), line=_line(text, None)) from None
    ordinals: Counter[tuple[str, str, str]] = Counter()
    for number, one in enumerate(found.effects):
        ordinals[equal := (one.within, one.op, one.digest)] += 1
        if one.ordinal != ordinals[equal]:
            place = ("effects", number, "ordinal")
            raise CassetteInvalid(path, f"`ordinal` must be {ordinals[equal]}", line=_line(text, place))
    del document["checksum"]
    if _checksum(document) != found.checksum:
        raise CassetteInvalid(path, "`checksum` is not that of the content, so it was edited or damaged")
    return found


def _checksum(document: Mapping[str, Any]) -> str:
    # The order of keys counts: a result is replayed with its keys in the order in which they were recorded.
    return hashlib.sha256(json.dumps(document, separators=(",", ":")).encode()).hexdigest()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key `{next(one for one in names if names.count(one) > 1)[:80]}` occurs twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"`{constant}` is not JSON")


def _finite(text: str) -> float:
    if isinf(number := float(text)):
        raise ValueError(f"the number `{text[:40]}` is too large")
    return number


def _line(text: str, wanted: tuple[str | int, ...] | None) -> int:
    """Return the line of the value at this path, or of the first repeated key or number that is not JSON.

    It is 0, which means unknown, if the text is so long that the search would take seconds.
    """
    if len(text) > _LONGEST_SEARCHED:
        return 0
    found, length = 1, 0
    with suppress(ValueError, IndexError):  # the rest of the text is not JSON
        for path, line, is_wrong in _values(text):
            if wanted is None:
                found = line
                if is_wrong:
                    break
            elif len(path) > length and path == wanted[: len(path)]:
                found, length = line, len(path)
    return found


def _values(text: str) -> Iterator[tuple[tuple[str | int, ...], int, bool]]:
    """Yield the path and line of each value, and whether it is invalid or its key a repeated one."""
    steps: list[str | int] = []
    names: list[set[str] | None] = []  # of the open objects; `None` for a list
    line, end, is_key = 1, 0, False
    for token in _TOKEN.finditer(text):
        line, end = line + text.count("\n", end, token.start()), token.start()
        word = token[0]
        if word == ":":
            continue
        if word in ("]", "}"):
            steps.pop()
            names.pop()
        elif word == ",":
            last = steps[-1]
            steps[-1], is_key = (last + 1, False) if isinstance(last, int) else ("", True)
        elif is_key and (known := names[-1]) is not None:
            name = steps[-1] = json.loads(word)
            is_key = False
            if name in known:
                yield tuple(steps), line, True
            known.add(name)
        else:
            yield tuple(steps), line, word in _CONSTANTS or (word[0] in "-0123456789" and isinf(float(word)))
            if word in ("[", "{"):
                steps.append(0 if word == "[" else "")
                names.append(None if word == "[" else set())
                is_key = word == "{"
