"""Every method of both planes has a rule, and the rules are what they are meant to be."""

from pathlib import Path

import pytest
from google.protobuf import descriptor_pool
from grpc_health.v1 import health_pb2

from mediaplane import authorization
from mediaplane.authorization import PACKAGE, RULES
from mediaplane.errors import PermissionDenied
from mediaplane.identity import LOCAL, Caller
from mediaplane.protocol.values import Role

PROTOS = Path(__file__).parents[2] / "proto"


def methods() -> list[str]:
    """Every method that a proto file declares, whether a plane serves it or not."""
    found = []
    for file in sorted(PROTOS.glob("mediaplane/v1/*.proto")):
        __import__(f"mediaplane.v1.{file.stem}_pb2")
        described = descriptor_pool.Default().FindFileByName(str(file.relative_to(PROTOS)))
        for service in described.services_by_name.values():
            found += [f"/{service.full_name}/{method.name}" for method in service.methods]
    return found


def test_every_method_has_a_rule_and_every_rule_a_method() -> None:
    assert sorted(RULES) == sorted(methods())
    assert authorization.missing(sorted({path.split("/")[1] for path in RULES})) == []


def test_a_method_without_a_rule_is_found() -> None:
    service = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    assert authorization.missing([service])[0] == f"/{service}/Check"


def test_a_method_without_a_rule_is_open_to_nobody() -> None:
    with pytest.raises(PermissionDenied):
        authorization.check(LOCAL, f"/{PACKAGE}.JobService/New")


@pytest.mark.parametrize("path", sorted(RULES))
def test_a_higher_role_may_whatever_a_lower_one_may(path: str) -> None:
    for tenant_id in (None, "north"):
        allowed = [
            RULES[path].admits(Caller("someone", role, tenant_id))
            for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
        ]
        assert allowed == sorted(allowed)


@pytest.mark.parametrize("path", sorted(RULES))
def test_nothing_that_changes_is_open_to_viewers_and_workers(path: str) -> None:
    rule = RULES[path]
    # AIP-131 and 132: these never change anything, so whatever else has to be thought about.
    reads = path.rpartition("/")[2].startswith(("Get", "List", "Watch", "Read", "Probe"))
    assert rule.changes is not reads
    for role in (Role.VIEWER, Role.WORKER):
        assert not (rule.changes and rule.admits(Caller("someone", role, None)))


def test_a_tenant_is_not_let_near_what_all_tenants_share() -> None:
    shared = [path for path, rule in RULES.items() if rule.is_shared]
    assert f"/{PACKAGE}.WorkerService/CommandWorker" in shared
    for path in shared:
        with pytest.raises(PermissionDenied, match="every tenant"):
            authorization.check(Caller("north's", Role.ADMIN, "north"), path)


def test_a_refusal_says_which_role_is_needed() -> None:
    with pytest.raises(PermissionDenied, match=r"DeleteLibrary needs the role admin.*operator"):
        authorization.check(
            Caller("someone", Role.OPERATOR, None), f"/{PACKAGE}.LibraryService/DeleteLibrary"
        )


def test_no_stream_changes_anything() -> None:
    # Their calls have no audit entry.
    for path in methods():
        service, name = path.removeprefix("/").split("/")
        method = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        assert not (method.server_streaming and RULES[path].changes), path
