"""What a provider raises becomes an error that can be told, classified and recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anyio import get_cancelled_exc_class
from sideband import SidebandError
from sideband.providers import ProviderError


@contextmanager
def provider_errors(provider: str) -> Iterator[None]:
    """Run code of a provider; whatever it raises leaves here as a ``SidebandError``, or is a cancellation.

    Raises:
        SidebandError: as the provider raised it; a ``ProviderError`` with the name of the class as its ``cause`` for
            everything else.
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
        # A plugin does not get to end the host by raising SystemExit among others.
        raise _typed(provider, RuntimeError(str(group))) from group


def _typed(provider: str, raised: Exception) -> SidebandError:
    if isinstance(raised, SidebandError):
        return raised
    if isinstance(raised, ExceptionGroup) and len(raised.exceptions) == 1:
        return _typed(provider, raised.exceptions[0])
    cause = type(raised).__name__
    return ProviderError(
        provider, f"it failed with {cause}: {raised}", cause=cause, hint="report it to the plugin's author"
    )
