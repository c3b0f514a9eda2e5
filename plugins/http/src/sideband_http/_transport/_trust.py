"""Which servers are trusted, and who the host is to those that ask."""

from __future__ import annotations

import os
import ssl
import stat
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
from attrs import define, field, frozen
from sideband.ops import Credential

from .._errors import AuthoritiesInvalid, ClientCertificateInvalid

Unlock = Callable[[str, str], Awaitable[Credential]]
"""Resolves a handle for an origin."""

_CertificateKey = tuple[bool, str | None]


@frozen
class ClientCertificate:
    """What the host shows to one origin.

    Args:
        certificate: a file in PEM form, with the certificates that lead to an authority.
        key: a file in PEM form; ``None`` if the key stands in ``certificate``.
        password: the handle of what the key is encrypted with.
    """

    certificate: Path
    key: Path | None = None
    password: str | None = None


async def no_secrets(handle: str, origin: str) -> Credential:
    """Resolves nothing."""
    raise ClientCertificateInvalid(origin, f"there is nobody who knows the secret `{handle}`")


@define
class Trust:
    """The certificate authorities that are trusted. Loading them takes 20 ms, so they are shared, and loaded late.

    Args:
        ca_file: authorities besides the public ones.
        certificates: by origin. None is ever shown to another one.
        unlock: resolves the handles of passwords.
    """

    ca_file: Path | None = None
    certificates: Mapping[str, ClientCertificate] = field(factory=dict)
    unlock: Unlock = no_secrets
    _contexts: dict[_CertificateKey, ssl.SSLContext] = field(factory=dict, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)

    async def context(self, *, http2: bool, origin: str | None = None) -> ssl.SSLContext:
        """The context for connections; one for each choice of protocols, since clients write that choice into it.

        Args:
            http2: whether HTTP/2 may be agreed on.
            origin: who is connected to, if that is one with a certificate.

        Raises:
            AuthoritiesInvalid: the configured authorities can't be read.
            ClientCertificateInvalid: its certificate can't be used.
        """
        key = (http2, origin)
        async with self._lock:
            if key not in self._contexts:
                own = None if origin is None else self.certificates[origin]
                password = None
                if origin is not None and own is not None and own.password is not None:
                    password = (await self.unlock(own.password, origin)).value
                load = partial(self._load, origin, own, password)
                self._contexts[key] = await anyio.to_thread.run_sync(load)
            return self._contexts[key]

    def _load(self, origin: str | None, own: ClientCertificate | None, password: str | None) -> ssl.SSLContext:
        import certifi  # noqa: PLC0415  only https needs it

        context = ssl.create_default_context(cafile=certifi.where())
        if self.ca_file is not None:
            try:
                context.load_verify_locations(cafile=self.ca_file)
            except OSError as error:  # what ssl raises is one, too
                problem = "there is no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
                raise AuthoritiesInvalid(str(self.ca_file), problem or type(error).__name__) from None
        if origin is not None and own is not None:
            _show(context, origin, own, password)
        return context


def _show(context: ssl.SSLContext, origin: str, own: ClientCertificate, password: str | None) -> None:
    key = own.certificate if own.key is None else own.key
    try:
        _status_of_file(origin, own.certificate)
        _check_private(origin, key)
        # Without a function the library would ask at the terminal for a key that is encrypted.
        context.load_cert_chain(own.certificate, own.key, password=lambda: password or "")
    except (ssl.SSLError, ValueError) as error:
        if isinstance(error, ClientCertificateInvalid):
            raise
        problem = "certificate and key do not fit together, or the password is wrong"
        raise ClientCertificateInvalid(origin, f"{key}: {problem}") from None
    except OSError as error:
        raise ClientCertificateInvalid(origin, f"{error.filename}: {error.strerror}") from None


def _check_private(origin: str, key: Path) -> None:
    found = _status_of_file(origin, key)
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ClientCertificateInvalid(origin, f"{key} can be read or changed by others")
    if found.st_uid not in {os.geteuid(), 0}:
        raise ClientCertificateInvalid(origin, f"{key} belongs to somebody else")


def _status_of_file(origin: str, path: Path) -> os.stat_result:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(found.st_mode):
        # Whoever reads a pipe may wait for ever.
        raise ClientCertificateInvalid(origin, f"{path} is no file")
    return found
