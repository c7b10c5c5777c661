"""Runs the pods of a manifest as processes of this machine: commands, settings, volumes, probes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.deploy import manifests
from tests.deploy.manifests import Object
from tests.support.commands import PROGRAM
from tests.support.ports import free_port
from tests.support.tree import unprivileged
from tests.support.waiting import eventually

DEADLINE_SECONDS = 180


@dataclass
class Cluster:
    """What pods find where they run: volumes that outlive them, and secrets."""

    directory: Path
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)

    def claim(self, name: str) -> Path:
        """Return the folder of a volume that somebody has claimed."""
        return self._folder(f"claim-{name}")

    def volume(self, volume: Object) -> Path:
        """Return the folder that is mounted for a volume of a pod."""
        if "persistentVolumeClaim" in volume:
            return self.claim(volume["persistentVolumeClaim"]["claimName"])
        if "secret" in volume:
            folder = self._folder(f"secret-{volume['secret']['secretName']}")
            for key, value in self.secrets[volume["secret"]["secretName"]].items():
                (folder / key).write_text(value)
            return folder
        assert "emptyDir" in volume
        return self._folder(f"empty-{uuid4().hex[:8]}")

    def _folder(self, name: str) -> Path:
        folder = self.directory / name
        folder.mkdir(exist_ok=True)
        return folder


class Pod:
    """One pod of a workload."""

    def __init__(self, cluster: Cluster, made_by: Object) -> None:
        self.spec = made_by["spec"]["template"]["spec"]
        self._cluster = cluster
        self.ports = manifests.ports(made_by)
        self._free_ports = {port: free_port() for port in self.ports.values()}
        self._volumes = {item["name"]: cluster.volume(item) for item in self.spec["volumes"]}
        for claim in made_by["spec"].get("volumeClaimTemplates", []):
            self._volumes[claim["metadata"]["name"]] = cluster.claim(claim["metadata"]["name"])
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def address(self, port: int) -> str:
        """Return where a port of this pod is reached."""
        return f"127.0.0.1:{self._free_ports[port]}"

    def path(self, container: Object, path: str) -> str:
        """Return where a path inside a container lies on this machine."""
        for mount in container["volumeMounts"]:
            if path == mount["mountPath"] or path.startswith(mount["mountPath"] + "/"):
                folder = self._volumes[mount["name"]]
                return f"{folder}{path.removeprefix(mount['mountPath'])}"
        return path

    def environment(self, container: Object) -> dict[str, str]:
        """Return the variables that the process of a container sees."""
        given = manifests.image_environment() | manifests.environment(container)
        for item in container.get("env", []):
            if "valueFrom" in item:
                wanted = item["valueFrom"]["secretKeyRef"]
                given[item["name"]] = self._cluster.secrets[wanted["name"]][wanted["key"]]
        given = {name: self.path(container, value) for name, value in given.items()}
        for name in given:
            if name.endswith("_ADDRESS"):
                host, _, port = given[name].rpartition(":")
                given[name] = f"{host}:{self._free_ports[int(port)]}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MEDIAPLANE_")}
        return kept | given | {"TMPDIR": self.path(container, "/tmp")}

    def start(self, container: Object) -> subprocess.Popen[str]:
        """Start the process of a container, under the permissions of files."""
        assert manifests.entrypoint() == ["mediaplane"]
        process = subprocess.Popen(
            [*unprivileged(), *PROGRAM, *container["args"]],
            env=self.environment(container),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes[container["name"]] = process
        return process

    def run_to_end(self, container: Object) -> tuple[int, str]:
        """Run a container to its end and return its exit code and what it said of errors."""
        process = self.start(container)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, errors

    def execute(self, container: Object, command: list[str]) -> str:
        """Run a command beside the process of a container; return what it prints."""
        words = [word for part in command for word in (PROGRAM if part == "mediaplane" else [part])]
        done = subprocess.run(
            [*unprivileged(), *words],
            env=self.environment(container),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the pod as a kubelet does until it is ready; kill whatever is left at the end."""
        try:
            for container in self.spec.get("initContainers", []):
                assert self.run_to_end(container) == (0, "")
            for container in self.spec["containers"]:
                self.start(container)
            for container in self.spec["containers"]:
                probe = container["startupProbe"]
                allowed_seconds = probe["periodSeconds"] * probe["failureThreshold"]
                eventually(lambda: self.is_well(container, "startupProbe"), allowed_seconds)  # noqa: B023 - called at once
            yield
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()
                assert process.stderr
                process.stderr.close()

    def is_well(self, container: Object, probe: str) -> bool:
        """Ask as a kubelet does: without TLS and without a token."""
        process = self._processes[container["name"]]
        assert process.stderr
        assert process.poll() is None, process.stderr.read()
        asked = container[probe]["grpc"]
        with grpc.insecure_channel(self.address(asked["port"])) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)  # its type stub lacks the methods
            try:
                request = health_pb2.HealthCheckRequest(service=asked["service"])
                answer = health.Check(request, timeout=container[probe].get("timeoutSeconds", 1))
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def terminate(self) -> dict[str, tuple[int, str]]:
        """End the pod within its grace; return the exit code and the errors of each container."""
        ends_at = time.monotonic() + self.spec["terminationGracePeriodSeconds"]
        ended = {}
        for container in self.spec["containers"]:
            self._processes[container["name"]].send_signal(signal.SIGTERM)
        for container in self.spec["containers"]:
            process = self._processes[container["name"]]
            slept = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
            left_seconds = ends_at - time.monotonic() - slept.get("seconds", 0)
            _, errors = process.communicate(timeout=left_seconds)
            ended[container["name"]] = (process.returncode, errors)
        return ended
