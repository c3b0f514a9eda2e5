"""The plugin passes the tests that every op family and every source of secrets passes."""

from contextlib import suppress

from sideband_secrets import SecretMissing
from sideband_secrets._encrypted import EncryptedBackend
from sideband_secrets._keys import Keys
from sideband_testing import Example, OpFamilyConformance, SecretSourceConformance

ORIGINS = ["https://api.example.org"]


class TestSecrets(OpFamilyConformance):
    """The store is encrypted with a key file, so that what a killed host has stored is known."""

    plugin = "op.secrets"
    config = {"backend": "encrypted"}
    max_modules = 120
    max_steps = 5
    examples = (
        Example("secrets.list"),
        Example("secrets.set", {"name": "new", "value": "the-value", "origins": ORIGINS}),
        Example("secrets.read", {"name": "token"}, result="the-old-value"),
        Example("secrets.read", {"name": "missing"}, error="secrets.missing"),
        Example("secrets.read_binary", {"name": "token"}, result=b"the-old-value"),
        Example("secrets.rotate", {"name": "token", "value": "the-new-value"}),
        Example("secrets.rollback", {"name": "token"}),
        Example("secrets.rekey", {"to": "file"}),
        Example("secrets.delete", {"name": "token"}),
    )
    remains_after_undo = {
        "secrets.delete": "the value of a secret that was deleted is kept nowhere",
        "secrets.rollback": "the newer value is kept nowhere",
    }

    async def prepare_host(self, host, example):
        if example.name == "secrets.set":
            with suppress(SecretMissing):
                await host.op("secrets.delete", {"name": "new"})
            return
        await host.op("secrets.set", {"name": "token", "value": "the-old-value", "origins": ORIGINS})
        if example.name == "secrets.rollback":
            await host.op("secrets.rotate", {"name": "token", "value": "the-new-value"})

    def observe(self, folder, home):
        stored = EncryptedBackend(home / "secrets", Keys(home / "secrets" / "key")).all(ask=False)
        return [(one.name, one.value, one.origins) for one in stored]


class TestSecretSource(SecretSourceConformance):
    plugin = "secrets.secrets"
    config = {"backend": "encrypted"}
    also = ("op.secrets",)
    max_modules = 120
    max_steps = 5
    holds = {"the-value-of-a-token": ORIGINS, "the-value-of-another": ()}

    async def store_secrets(self, host):
        for number, (value, origins) in enumerate(self.holds.items()):
            await host.op("secrets.set", {"name": f"token{number}", "value": value, "origins": list(origins)})
