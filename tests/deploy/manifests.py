"""What deploy/ says, as Python reads it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
EDITIONS = ["sqlite", "postgresql"]

# An object of Kubernetes, or a part of one.
Object: TypeAlias = dict[str, Any]


def objects(edition: str) -> list[Object]:
    """Return every object of an edition, in the order in which kubectl applies them."""
    files = sorted((KUBERNETES / edition).glob("*.yaml"))
    return [found for file in files for found in yaml.safe_load_all(file.read_text())]


def of_kind(edition: str, kind: str) -> list[Object]:
    return [found for found in objects(edition) if found["kind"] == kind]


def workloads(edition: str) -> list[Object]:
    """Return the objects that make pods."""
    return [found for found in objects(edition) if "template" in found.get("spec", {})]


def workload(edition: str, name: str) -> Object:
    (found,) = [found for found in workloads(edition) if found["metadata"]["name"] == name]
    return found


def containers(made_by: Object) -> list[Object]:
    """Return all containers of a workload's pods, those that run first among them."""
    spec = made_by["spec"]["template"]["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


def ports(made_by: Object) -> dict[str, int]:
    """Return the ports of a workload's pods by name."""
    return {
        port["name"]: port["containerPort"]
        for container in containers(made_by)
        for port in container.get("ports", [])
    }


def environment(container: Object) -> dict[str, str]:
    """Return the variables whose values the manifest itself gives."""
    return {item["name"]: item["value"] for item in container.get("env", []) if "value" in item}


def instructions(name: str) -> Iterator[str]:
    """Yield the arguments of each instruction of this name in the last stage of the Dockerfile."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    stage = text[text.rindex("\nFROM ") :]
    yield from re.findall(rf"^{name} (.*)$", stage, re.MULTILINE)


def image_environment() -> dict[str, str]:
    """Return the settings that the image brings along."""
    words = " ".join(instructions("ENV")).split()
    return dict(word.split("=", 1) for word in words if word.startswith("MEDIAPLANE_"))


def entrypoint() -> list[str]:
    (given,) = instructions("ENTRYPOINT")
    words: list[str] = json.loads(given)
    return words
