"""Conversion of a provider's exceptions to errors that can be reported, classified and recorded."""

from __future__ import annotations

from anyio import get_cancelled_exc_class
from sideband import SidebandError
from sideband.providers import ProviderError


class ProviderErrors:
    """Run code of a provider and convert its exceptions to ``SidebandError``. Cancellation passes unchanged.

    Each event of a stream is received in such a block, so it is not a generator, which takes twice as many calls.

    Args:
        provider: the name of the provider.

    Raises:
        SidebandError: if the provider raises one.
        ProviderError: if the provider raises any other exception; the ``cause`` is the name of its class.
    """

    __slots__ = ("_provider",)

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _kind: object, raised: BaseException | None, _traceback: object) -> None:
        """Convert the exception, if there is one."""
        if isinstance(raised, Exception):
            if not isinstance(raised, SidebandError):
                raise _typed(self._provider, raised) from raised
        elif isinstance(raised, BaseExceptionGroup) and _is_failure(raised):
            # A plugin must not end the host by raising SystemExit in a group.
            raise _typed(self._provider, RuntimeError(str(raised))) from raised


def _is_failure(group: BaseExceptionGroup) -> bool:
    return group.subgroup((get_cancelled_exc_class(), KeyboardInterrupt)) is None


def _typed(provider: str, raised: Exception) -> SidebandError:
    if isinstance(raised, SidebandError):
        return raised
    if isinstance(raised, ExceptionGroup) and len(raised.exceptions) == 1:
        return _typed(provider, raised.exceptions[0])
    cause = type(raised).__name__
    return ProviderError(
        provider, f"raised {cause}: {raised}", cause=cause, hint="report this to the author of the plugin"
    )
