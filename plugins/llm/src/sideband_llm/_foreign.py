"""Conversion of a provider's exceptions to errors that can be reported, classified and recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anyio import get_cancelled_exc_class
from sideband import SidebandError
from sideband.providers import ProviderError


@contextmanager
def provider_errors(provider: str) -> Iterator[None]:
    """Run code of a provider and convert its exceptions to ``SidebandError``. Cancellation passes unchanged.

    Raises:
        SidebandError: if the provider raises one.
        ProviderError: if the provider raises any other exception; the ``cause`` is the name of its class.
    """
    try:
        yield
    except SidebandError:
        raise
    except Exception as raised:
        raise _typed(provider, raised) from raised
    except BaseExceptionGroup as group:
        if group.subgroup((get_cancelled_exc_class(), KeyboardInterrupt)) is not None:
            raise
        # A plugin must not end the host by raising SystemExit in a group.
        raise _typed(provider, RuntimeError(str(group))) from group


def _typed(provider: str, raised: Exception) -> SidebandError:
    if isinstance(raised, SidebandError):
        return raised
    if isinstance(raised, ExceptionGroup) and len(raised.exceptions) == 1:
        return _typed(provider, raised.exceptions[0])
    cause = type(raised).__name__
    return ProviderError(
        provider, f"raised {cause}: {raised}", cause=cause, hint="report this to the author of the plugin"
    )
