"""Sandboxes with one fault each: wrappers of the one that does not isolate."""

import os
from types import SimpleNamespace

import attrs
from sideband import Plugin
from sideband.sandboxing import Isolation, Probe
from sideband.workers import PlainSandbox
from sideband_testing import SandboxConformance


class Good:
    name = "faulty"

    def __init__(self):
        self.inner = PlainSandbox()

    async def probe(self, folders=()):
        return await self.inner.probe(folders)

    async def launch(self, request):
        return await self.inner.launch(request)

    async def close(self):
        await self.inner.close()


def sandbox(cls):
    value = SimpleNamespace(sideband_sandboxes=lambda: [cls()], backends=("asyncio",))
    return Plugin("sandbox", "faulty", value)


class Base(SandboxConformance):
    fault = ""


class TestGood(Base):
    plugin = sandbox(Good)


class ClaimsWithoutProof(Good):
    async def probe(self, folders=()):
        return Probe(Isolation.NO_NAMESPACES)


class TestClaimsWithoutProof(Base):
    fault = "test_probe_claims_what_it_proved"
    plugin = sandbox(ClaimsWithoutProof)
    overrides = {"test_workers_cannot_do_what_the_tier_forbids": "what it claims is wrong too"}


class PassesVariables(Good):
    async def launch(self, request):
        return await self.inner.launch(attrs.evolve(request, environment={**os.environ, **request.environment}))


class TestPassesVariables(Base):
    fault = "test_workers_run_tools_without_the_variables_of_the_host"
    plugin = sandbox(PassesVariables)


class ClaimsWrongly(Good):
    async def probe(self, folders=()):
        return Probe(Isolation.NO_NAMESPACES, proofs=("a worker could not read a file",))


class TestClaimsWrongly(Base):
    fault = "test_workers_cannot_do_what_the_tier_forbids"
    plugin = sandbox(ClaimsWrongly)


class LeavesOpen(Good):
    async def probe(self, folders=()):
        os.open(os.devnull, os.O_RDONLY)
        return await self.inner.probe(folders)


class TestLeavesADescriptor(Base):
    fault = "test_close_releases_everything"
    plugin = sandbox(LeavesOpen)
    overrides = {"test_closed_host_leaves_nothing_behind": "a host closes it too"}
