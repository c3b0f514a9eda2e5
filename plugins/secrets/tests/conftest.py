"""Hosts with this plugin, real servers, and an op of another family that requests credentials."""

import base64
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sysconfig
import threading
from collections import deque
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import httpx
import keyring
import pytest
import sideband_secrets.plugin
import sideband_store_sqlite.plugin
from keyring.backends import SecretService
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import Level, OpContext, OpFamily, op
from sideband_secrets import _sealing


@pytest.fixture
def anyio_backend():
    return "asyncio"


class ProbeParams(BaseModel):
    handle: str
    audience: str


class ProbeFailure(RuntimeError):
    pass


def forms(value):
    """Return the value in each form that must be redacted."""
    return {
        "plain": value,
        "url": quote(value, safe=""),
        "base64": base64.b64encode(value.encode()).decode(),
        "hex": value.encode().hex(),
        "json": json.dumps(value)[1:-1],
    }


@op("probe.send", level=Level.MONITORED)
async def send(params: ProbeParams, ctx: OpContext) -> dict[str, str | int]:
    """Return the credential in all forms, which must be redacted."""
    credential = await ctx.credential(params.handle, params.audience)
    await ctx.progress(message=f"sending {credential.value}")
    return {
        "length": len(credential.value),
        "headers": " ".join(f"{len(name)}:{len(value)}" for name, value in credential.headers.items()),
        **forms(credential.value),
    }


@op("probe.fail", level=Level.MONITORED)
async def fail(params: ProbeParams, ctx: OpContext) -> None:
    """Fail with a message that contains the credential in all forms."""
    credential = await ctx.credential(params.handle, params.audience)
    raise ProbeFailure(" ".join(forms(credential.value).values()))


PROBE = Plugin(
    "op", "probe", SimpleNamespace(sideband_ops=lambda: OpFamily(name="probe", ops=(send, fail), doc="Leaks secrets."))
)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture(scope="module")
def cheap_scrypt():
    """Reduce the cost of key derivation, which is not the subject of most tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_sealing._SCRYPT, "n", 16)
        yield


@pytest.fixture
def open_host(home):
    @asynccontextmanager
    async def open_host(**config):
        plugins = [
            Plugin("op", "secrets", sideband_secrets.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            PROBE,
        ]
        settings = {"plugins": {"secrets": config}}
        async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
            yield host

    return open_host


@contextmanager
def run_secret_service(folder):
    """Run an unlocked gnome-keyring on its own D-Bus, and yield its environment."""
    missing = [name for name in ("dbus-run-session", "gnome-keyring-daemon") if shutil.which(name) is None]
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{' and '.join(missing)} not installed")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
    }
    script = (
        "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null &&"
        ' printf "%s\\n" "$DBUS_SESSION_BUS_ADDRESS" && exec cat'
    )
    with subprocess.Popen(
        ["dbus-run-session", "--", "sh", "-c", script],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        address = process.stdout.readline().strip()
        if not address:
            pytest.fail("the Secret Service did not start")
        try:
            yield environment | {"DBUS_SESSION_BUS_ADDRESS": address}
        finally:
            process.stdin.close()
            process.wait(10)
            # The bus may have started another daemon, which does not end with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def secret_service(tmp_path_factory):
    """The Secret Service shared by most tests."""
    with run_secret_service(tmp_path_factory.mktemp("keyring")) as environment:
        yield environment


@pytest.fixture
def use_keyring():
    """Return a function that sets the keyring of this process."""
    before = keyring.get_keyring()
    yield keyring.set_keyring
    keyring.set_keyring(before)


@pytest.fixture
def real_keyring(secret_service, use_keyring, monkeypatch):
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", secret_service["DBUS_SESSION_BUS_ADDRESS"])
    found = SecretService.Keyring()
    use_keyring(found)
    return found


@pytest.fixture
def separate_secret_service(tmp_path, monkeypatch):
    """The environment of a Secret Service that is used by one test only."""
    with run_secret_service(tmp_path) as environment:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", environment["DBUS_SESSION_BUS_ADDRESS"])
        yield environment


@pytest.fixture
def lockable_keyring(separate_secret_service, use_keyring):
    """A keyring that is used by one test only."""
    found = SecretService.Keyring()
    use_keyring(found)
    return found


class VaultServer:
    """A real server with Vault's API (OpenBao), in memory, with a KV engine of version 2 at `secret`."""

    def __init__(self, address, ca_file):
        self.address = address
        self.ca_file = ca_file
        trusted = ssl.create_default_context(cafile=ca_file)
        headers = {"X-Vault-Token": "root"}
        self.admin = httpx.Client(base_url=f"{address}/v1/", headers=headers, verify=trusted, trust_env=False)

    def ask(self, method, path, data=None):
        answer = self.admin.request(method, path, json=data)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def put(self, name, /, **fields):
        return self.ask("POST", f"secret/data/{name}", {"data": fields})

    def token(self, *policies, **more):
        """Create a token with the policies, by default ``default``."""
        return self.ask("POST", "auth/token/create", {"policies": policies or ["default"], **more})["auth"]

    def policy(self, name, text):
        self.ask("PUT", f"sys/policies/acl/{name}", {"policy": text})


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def run_vault(*options, ca_file=None):
    program = Path(sysconfig.get_path("scripts")) / "bao"
    port = free_port()
    command = [program, "server", "-dev", "-dev-root-token-id=root", "-dev-no-store-token"]
    with subprocess.Popen(
        [*command, f"-dev-listen-address=127.0.0.1:{port}", *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            lines = iter(process.stdout.readline, "")
            if not any("server started" in line for line in lines):
                pytest.fail("the Vault server did not start")
            # drain the pipe, so that later output does not block the server
            threading.Thread(target=deque, args=(lines, 0), daemon=True).start()
            server = VaultServer(f"{'https' if ca_file else 'http'}://127.0.0.1:{port}", ca_file)
            with server.admin:
                yield server
        finally:
            process.kill()


@pytest.fixture(scope="session")
def vault():
    """The Vault server shared by most tests; each test uses its own names."""
    with run_vault() as server:
        yield server


@pytest.fixture
def own_vault():
    """A Vault server that is used by one test only."""
    with run_vault() as server:
        yield server


@pytest.fixture(scope="session")
def vault_with_tls(tmp_path_factory):
    """A Vault server with TLS, and the certificate of its authority."""
    folder = tmp_path_factory.mktemp("tls")
    ca_file = folder / "vault-ca.pem"
    with run_vault("-dev-tls", f"-dev-tls-cert-dir={folder}", ca_file=ca_file) as server:
        yield server
