"""The bill of materials of a lock, as CycloneDX."""

from __future__ import annotations

from uuid import UUID

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.dependency import Dependency
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from ._model import DistLock, DistLockPackage


def bill_of_materials(lock: DistLock) -> str:
    """Return the bill of materials. It is the same for the same lock."""
    name = lock.dist.name or "distribution"
    root = Component(name=name, type=ComponentType.APPLICATION, bom_ref=f"{name}@{lock.manifest[:12]}")
    # Of several versions for several platforms, that of the platform that was locked has files.
    packages = {one.name: one for one in sorted(lock.packages, key=lambda one: bool(one.files))}
    plugins = {one.package for one in lock.plugins}
    bom = Bom(
        serial_number=UUID(lock.manifest[:32]),
        components=[_component(one, lock) for one in lock.packages],
        dependencies=[
            Dependency(root.bom_ref, [Dependency(_reference(packages[one])) for one in sorted(plugins)]),
            *(
                Dependency(_reference(one), [Dependency(_reference(packages[name])) for name in one.requires])
                for one in lock.packages
            ),
        ],
    )
    bom.metadata.component = root
    bom.metadata.timestamp = None  # type: ignore[assignment]  # so that the same lock has the same bill
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _reference(package: DistLockPackage) -> BomRef:
    return BomRef(f"{package.name}@{package.version}")


def _component(package: DistLockPackage, lock: DistLock) -> Component:
    plugins = [f"{one.kind}.{one.name}" for one in lock.plugins if one.package == package.name]
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=_reference(package).value,
        purl=PackageURL("pypi", None, package.name, package.version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest, _ in package.wheel_hashes()],
        properties=[Property(name="sideband:plugin", value=plugin) for plugin in plugins],
    )
