"""The headers that the variables of OpenTelemetry set: which of them are secrets, and whether they are valid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from ._errors import HeadersInvalid

_SIGNALS = ("", "TRACES_", "METRICS_")
# The values of these are short names. They would be redacted wherever a text contains them.
_LABEL = re.compile(r"(agent|dataset|environment|name|organization|org-?id|project|source|stream|tenant|type)(-?id)?\Z")
_VALID = re.compile(r"[!#-'*+.0-9A-Z^-z|~-]+\s*=[ !#-+\--:<-\[\]-~]*")


def secrets_of(environment: Mapping[str, str]) -> Iterator[str]:
    """Return the secrets in the headers and addresses of collectors."""
    for signal in _SIGNALS:
        for item in environment.get(f"OTEL_EXPORTER_OTLP_{signal}HEADERS", "").split(","):
            name, _, value = item.partition("=")
            if not _LABEL.search(name.strip().lower()):
                yield from _secrets_in(value.strip())
                yield from _secrets_in(unquote(value.strip()))
        try:
            password = urlsplit(environment.get(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT", "")).password
        except ValueError:
            continue
        if password:
            yield unquote(password)


def check_headers(environment: Mapping[str, str]) -> None:
    """Check that all headers are valid. The SDK would write those that are not to its log, with their values.

    Raises:
        HeadersInvalid: if one is not.
    """
    for signal in _SIGNALS:
        variable = f"OTEL_EXPORTER_OTLP_{signal}HEADERS"
        for number, item in enumerate(environment.get(variable, "").split(","), 1):
            if item.strip() and not _VALID.fullmatch(item.strip()):
                raise HeadersInvalid(variable, number)


def _secrets_in(value: str) -> Iterator[str]:
    """Return a value, and what follows the scheme in one such as ``Bearer …``."""
    if value:
        yield value
        if (token := value.rpartition(" ")[2]) != value:
            yield token
