"""Tools that know Kubernetes and containers find nothing wrong with deploy/."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.manifests import DEPLOY, EDITIONS, KUBERNETES

MANUAL = Path(__file__).parents[2] / "docs" / "KUBERNETES.md"
TOOLS = Path(__file__).parents[2] / ".venv-deploy" / "bin"


@pytest.fixture(autouse=True)
def tools_are_installed() -> None:
    if not (TOOLS.parent / ".stamp").exists():
        pytest.skip("the tools that check deploy/ are missing: run `make check`")


def run(tool: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # Nothing is asked of the internet, where a stranger learns of it.
    return subprocess.run(
        [TOOLS / tool, *arguments],
        env=os.environ | {"LOG_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_object_is_accepted_by_the_oldest_and_the_newest_kubernetes(edition: str) -> None:
    (oldest,) = re.findall(r"Kubernetes (\S+) or later", MANUAL.read_text())
    files = sorted((KUBERNETES / edition).glob("*.yaml"))
    for version in (["--kubernetes-version", oldest], []):
        done = run("kubernetes-validate", "--strict", *version, *files)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_field_that_kubernetes_does_not_know_is_noticed(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    text = (KUBERNETES / "sqlite" / "mediaplane.yaml").read_text()
    broken.write_text(text.replace("readOnlyRootFilesystem", "readOnlyRoot"))
    assert run("kubernetes-validate", "--strict", broken).returncode != 0


def test_checkov_finds_nothing_but_the_fault_that_was_put_there(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path, dirs_exist_ok=True)
    text = (KUBERNETES / "postgresql" / "migration.yaml").read_text()
    broken = text.replace("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false")
    (tmp_path / "broken.yaml").write_text(broken)
    frameworks = ("--framework", "kubernetes", "dockerfile")
    done = run("checkov", "-d", tmp_path, *frameworks, "--output", "json", "--skip-download")
    reports = json.loads(done.stdout)
    assert {report["check_type"] for report in reports} == {"kubernetes", "dockerfile"}
    found = [
        (failed["file_path"], failed["check_id"])
        for report in reports
        for failed in report["results"]["failed_checks"]
    ]
    assert found == [("/broken.yaml", "CKV_K8S_22")]


def test_what_checkov_is_told_to_pass_over_has_a_reason() -> None:
    for file in KUBERNETES.rglob("*.yaml"):
        for found in yaml.safe_load_all(file.read_text()):
            for name, skip in found["metadata"].get("annotations", {}).items():
                if name.startswith("checkov.io/skip"):
                    assert len(skip.partition("=")[2]) > 20, f"{file.name}: {skip}"


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    done = run("hadolint", DEPLOY / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")
