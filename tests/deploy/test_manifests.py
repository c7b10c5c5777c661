"""The manifests fit together, and ask for no more than mediaplane needs."""

import re
from dataclasses import fields
from typing import Any

import pytest

from control_plane.settings import ControlSettings
from data_plane.settings import DataSettings
from mediaplane import __version__
from mediaplane.settings import variable
from tests.deploy import manifests
from tests.deploy.manifests import EDITIONS, Object

WORKLOADS = [(edition, found) for edition in EDITIONS for found in manifests.workloads(edition)]
CONTAINERS = [
    (edition, made_by, container)
    for edition, made_by in WORKLOADS
    for container in manifests.containers(made_by)
]
GIBIBYTE = 1 << 30
DOCS = manifests.DEPLOY.parent / "docs"


def identity(value: Any) -> str:
    return str(value["metadata"]["name"] if "metadata" in value else value["name"])


def each_workload(function: Any) -> Any:
    ids = [f"{edition}-{identity(made_by)}" for edition, made_by in WORKLOADS]
    return pytest.mark.parametrize(("edition", "made_by"), WORKLOADS, ids=ids)(function)


def each_container(function: Any) -> Any:
    ids = [f"{edition}-{identity(container)}" for edition, _, container in CONTAINERS]
    return pytest.mark.parametrize(("edition", "made_by", "container"), CONTAINERS, ids=ids)(
        function
    )


def mounts(container: Object) -> dict[str, Object]:
    return {mount["name"]: mount for mount in container.get("volumeMounts", [])}


@each_container
def test_a_container_runs_as_the_restricted_profile_demands(
    edition: str, made_by: Object, container: Object
) -> None:
    pod = made_by["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (user,) = manifests.instructions("USER")
    names = ("runAsUser", "runAsGroup")
    assert user == ":".join(str(pod["securityContext"][name]) for name in names)


@each_container
def test_every_pod_runs_the_image_of_this_version(
    edition: str, made_by: Object, container: Object
) -> None:
    assert container["image"] == f"mediaplane:{__version__}"
    if made_by["kind"] == "Job":
        assert identity(made_by).endswith("-" + __version__.replace(".", "-"))


@each_container
def test_only_a_data_plane_sees_media_and_it_cannot_write_there(
    edition: str, made_by: Object, container: Object
) -> None:
    media = mounts(container).get("media")
    assert bool(media) == (container["args"] == ["data-plane"])
    if media:
        assert media["readOnly"]
        assert manifests.environment(container)["MEDIAPLANE_ROOTS"] == media["mountPath"]


@each_container
def test_every_probe_asks_at_the_port_where_the_plane_answers(
    edition: str, made_by: Object, container: Object
) -> None:
    if container["args"] == ["db", "upgrade"]:
        return
    probes = {name: container[name]["grpc"] for name in container if name.endswith("Probe")}
    assert {name: probe["service"] for name, probe in probes.items()} == {
        "startupProbe": "readiness",
        "readinessProbe": "readiness",
        "livenessProbe": "liveness",
    }
    plane = container["args"][0].removesuffix("-plane").upper()
    address = manifests.environment(container)[f"MEDIAPLANE_{plane}_HEALTH_ADDRESS"]
    assert {probe["port"] for probe in probes.values()} == {int(address.rpartition(":")[2])}


@each_container
def test_every_address_has_a_port_of_the_pod(
    edition: str, made_by: Object, container: Object
) -> None:
    served = {
        int(value.rpartition(":")[2])
        for name, value in manifests.environment(container).items()
        if name.endswith("_ADDRESS")
    }
    assert served == {port["containerPort"] for port in container.get("ports", [])}


@each_container
def test_every_variable_is_a_setting_of_the_plane_that_runs(
    edition: str, made_by: Object, container: Object
) -> None:
    kinds = {"control-plane": ControlSettings, "data-plane": DataSettings}
    plane = container["args"][0]
    known = {"MEDIAPLANE_DATABASE_URL", "MEDIAPLANE_SOCKETS"}
    if plane in kinds:
        known.add(f"MEDIAPLANE_{plane.removesuffix('-plane').upper()}_ADDRESS")
        known |= {variable(field.name) for field in fields(kinds[plane])}
    assert {item["name"] for item in container.get("env", [])} <= known


@each_container
def test_decoders_at_their_limit_leave_memory_to_their_plane(
    edition: str, made_by: Object, container: Object
) -> None:
    if container["args"] != ["data-plane"]:
        return
    given = manifests.environment(container)
    limit = container["resources"]["limits"]["memory"]
    assert limit.endswith("Gi")
    decoders = int(given["MEDIAPLANE_IMAGE_SLOTS"]) + DataSettings.video_slots
    taken = decoders * int(given["MEDIAPLANE_DECODER_MEMORY_BYTES"])
    assert taken + GIBIBYTE <= int(limit.removesuffix("Gi")) * GIBIBYTE


@each_workload
def test_a_pod_has_the_time_to_stop_that_its_planes_take(edition: str, made_by: Object) -> None:
    pod = made_by["spec"]["template"]["spec"]
    for container in pod["containers"]:
        slept = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
        default = ControlSettings.stop_grace_seconds
        given = manifests.environment(container).get("MEDIAPLANE_STOP_GRACE_SECONDS", default)
        needed_seconds = slept.get("seconds", 0) + float(given) + 10
        assert pod["terminationGracePeriodSeconds"] >= needed_seconds


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_service_leads_to_ports_of_pods_that_exist(edition: str) -> None:
    for service in manifests.of_kind(edition, "Service"):
        wanted = service["spec"]["selector"].items()
        (pods,) = [
            made_by
            for made_by in manifests.workloads(edition)
            if wanted <= made_by["spec"]["template"]["metadata"]["labels"].items()
        ]
        for port in service["spec"]["ports"]:
            assert manifests.ports(pods)[port["targetPort"]] == port["port"]


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_port_is_let_in_by_name_and_no_other(edition: str) -> None:
    (policy,) = manifests.of_kind(edition, "NetworkPolicy")
    let_in = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    assert let_in == {
        name for made_by in manifests.workloads(edition) for name in manifests.ports(made_by)
    }


@pytest.mark.parametrize("edition", EDITIONS)
def test_prometheus_finds_the_metrics_of_every_service(edition: str) -> None:
    (monitor,) = manifests.of_kind("monitoring", "ServiceMonitor")
    scraped = {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]}
    for service in manifests.of_kind(edition, "Service"):
        assert monitor["spec"]["selector"]["matchLabels"].items() <= (
            service["metadata"]["labels"].items()
        )
        names = {port["name"] for port in service["spec"]["ports"]}
        assert {name for name in names if "metrics" in name} <= scraped


@pytest.mark.parametrize("edition", EDITIONS)
def test_disruption_budgets_and_autoscalers_mean_pods_that_exist(edition: str) -> None:
    names = {identity(made_by) for made_by in manifests.workloads(edition)}
    for budget in manifests.of_kind(edition, "PodDisruptionBudget"):
        made_by = manifests.workload(edition, identity(budget))
        assert budget["spec"]["selector"] == made_by["spec"]["selector"]
    for scaler in manifests.of_kind(edition, "HorizontalPodAutoscaler"):
        (scaled_by,) = scaler["spec"]["metrics"]
        assert (
            f"`{scaled_by['external']['metric']['name']}{{" in (DOCS / "OPERATIONS.md").read_text()
        )
        target = scaler["spec"]["scaleTargetRef"]["name"]
        assert target in names
        # Otherwise every apply would undo what the autoscaler has decided.
        assert "replicas" not in manifests.workload(edition, target)["spec"]


def test_every_place_that_the_manual_names_exists() -> None:
    named = re.findall(r"deploy/kubernetes/[\w./-]*\w/?", (DOCS / "KUBERNETES.md").read_text())
    assert {f"deploy/kubernetes/{edition}" for edition in EDITIONS} <= set(named)
    for place in named:
        assert (DOCS.parent / place).exists(), place


def test_sqlite_has_one_pod_and_a_volume_of_its_own() -> None:
    (found,) = manifests.workloads("sqlite")
    assert (found["kind"], found["spec"]["replicas"]) == ("StatefulSet", 1)
    (claim,) = found["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_the_planes_log_in_to_postgresql_apart_and_nothing_names_a_password() -> None:
    logins = {}
    for made_by in manifests.workloads("postgresql"):
        (container,) = manifests.containers(made_by)
        (url,) = [item for item in container["env"] if item["name"].endswith("DATABASE_URL")]
        logins[identity(container)] = url["valueFrom"]["secretKeyRef"]["key"]
    assert logins == {
        "upgrade": "control-url",
        "control-plane": "control-url",
        "data-plane": "data-url",
    }
    assert not manifests.of_kind("postgresql", "Secret")
