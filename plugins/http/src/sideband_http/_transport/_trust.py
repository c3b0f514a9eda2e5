"""TLS: trusted certificate authorities and client certificates."""

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
"""A function that resolves a secret handle for an origin."""

_CertificateKey = tuple[bool, str | None]


@frozen
class ClientCertificate:
    """The client certificate for an origin.

    Args:
        certificate: a PEM file with the certificate and its chain.
        key: a PEM file; ``None`` if the key is in ``certificate``.
        password: the handle of the secret that decrypts the key.
    """

    certificate: Path
    key: Path | None = None
    password: str | None = None


async def no_secrets(handle: str, origin: str) -> Credential:
    """Raise for every handle."""
    raise ClientCertificateInvalid(origin, f"no secret store to resolve `{handle}`")


@define
class Trust:
    """The TLS contexts. Loading one takes 20 ms, so they are shared and loaded on first use.

    Args:
        ca_file: a PEM file of authorities to trust in addition to the public ones.
        certificates: the client certificates by origin. Each is sent only to its own origin.
        unlock: resolves the handles of key passwords.
    """

    ca_file: Path | None = None
    certificates: Mapping[str, ClientCertificate] = field(factory=dict)
    unlock: Unlock = no_secrets
    _contexts: dict[_CertificateKey, ssl.SSLContext] = field(factory=dict, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)

    async def context(self, *, http2: bool, origin: str | None = None) -> ssl.SSLContext:
        """Return the context for connections. Each protocol choice has its own, because clients store it there.

        Args:
            http2: whether HTTP/2 may be negotiated.
            origin: the origin, if it has a client certificate.

        Raises:
            AuthoritiesInvalid: if the configured authorities cannot be loaded.
            ClientCertificateInvalid: if the client certificate cannot be loaded.
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
            except OSError as error:  # SSLError is a subclass
                problem = "the file contains no certificate" if isinstance(error, ssl.SSLError) else error.strerror
                raise AuthoritiesInvalid(str(self.ca_file), problem or type(error).__name__) from None
        if origin is not None and own is not None:
            _load_certificate(context, origin, own, password)
        return context


def _load_certificate(context: ssl.SSLContext, origin: str, own: ClientCertificate, password: str | None) -> None:
    key = own.certificate if own.key is None else own.key
    try:
        _status_of_file(origin, own.certificate)
        _check_private(origin, key)
        # Without a function, OpenSSL would prompt on the terminal for the password of an encrypted key.
        context.load_cert_chain(own.certificate, own.key, password=lambda: password or "")
    except (ssl.SSLError, ValueError) as error:
        if isinstance(error, ClientCertificateInvalid):
            raise
        problem = "the certificate and key do not match, or the password is wrong"
        raise ClientCertificateInvalid(origin, f"{key}: {problem}") from None
    except OSError as error:
        raise ClientCertificateInvalid(origin, f"{error.filename}: {error.strerror}") from None


def _check_private(origin: str, key: Path) -> None:
    found = _status_of_file(origin, key)
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ClientCertificateInvalid(origin, f"{key} is accessible to other users")
    if found.st_uid not in {os.geteuid(), 0}:
        raise ClientCertificateInvalid(origin, f"{key} belongs to another user")


def _status_of_file(origin: str, path: Path) -> os.stat_result:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(found.st_mode):
        # Reading a pipe may block forever.
        raise ClientCertificateInvalid(origin, f"{path} is not a regular file")
    return found
