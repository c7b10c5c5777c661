"""The pods of both editions, run from their manifests: start, be ready, do a job, stop in time."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen
from uuid import uuid4

import pytest
from PIL import Image
from sqlalchemy import make_url, text

from mediaplane.protocol.engines import DATA_PLANE_ROLE
from tests.deploy import manifests
from tests.deploy.pods import Cluster, Pod
from tests.support.certificates import Authority
from tests.support.commands import Commands
from tests.support.databases import administrator
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually

MANUAL = (Path(__file__).parents[2] / "docs" / "KUBERNETES.md").read_text()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def cluster(authority: Authority) -> Iterator[Cluster]:
    """A cluster with a certificate and a picture."""
    # Not below tmp_path: a pod's own /tmp lies in it, and the path of a socket must be short.
    with TemporaryDirectory(prefix="pods-") as place:
        yield _furnished(Cluster(Path(place)), authority)


def _furnished(cluster: Cluster, authority: Authority) -> Cluster:
    certificate, key = authority.issue("mediaplane")
    cluster.secrets["mediaplane-tls"] = {
        "tls.crt": certificate.read_text(),
        "tls.key": key.read_text(),
    }
    media = cluster.claim("mediaplane-media")
    Image.new("RGB", (640, 480), "red").save(media / "red.jpg")
    media.chmod(0o555)
    return cluster


@pytest.fixture
def client(tmp_path: Path, authority: Authority) -> Commands:
    """The command line on a machine outside of the cluster."""
    client = Commands(tmp_path / "client")
    client.state.mkdir()
    client.environment["MEDIAPLANE_TLS_CA"] = str(authority.certificate)
    return client


@pytest.fixture
def postgres_logins(cluster: Cluster, postgres_server: PostgresServer) -> Iterator[None]:
    """An empty database with its two logins, set up by the manual's own statements."""
    (block,) = re.findall(r"```sql\n(.*?)```", MANUAL, re.DOTALL)
    owner = f"mediaplane_{uuid4().hex[:12]}"
    worker = f"{owner}_worker"
    names = {"mediaplane": owner, "mediaplane_worker": worker}
    with administrator(postgres_server.url) as conn:
        is_there = conn.scalar(text(f"SELECT to_regrole('{DATA_PLANE_ROLE}') IS NOT NULL"))
        for statement in block.strip().splitlines():
            if is_there and statement.startswith(f"CREATE ROLE {DATA_PLANE_ROLE}"):
                continue  # roles belong to the whole server, and other tests have made it
            conn.execute(text(re.sub(r"\w+", lambda word: names.get(word[0], word[0]), statement)))
        place = make_url(postgres_server.url).set(drivername="postgresql", database=owner)
        cluster.secrets["mediaplane-database"] = {
            key: place.set(username=login).render_as_string(hide_password=False)
            for key, login in (("control-url", owner), ("data-url", worker))
        }
        try:
            yield
        finally:
            conn.execute(text(f"DROP DATABASE {owner} WITH (FORCE)"))
            conn.execute(text(f"DROP ROLE {owner}, {worker}"))


def container_of(pod: Pod, name: str) -> manifests.Object:
    found: manifests.Object
    (found,) = [container for container in pod.spec["containers"] if container["name"] == name]
    return found


def check_probes(pod: Pod) -> None:
    for container in pod.spec["containers"]:
        for probe in ("readinessProbe", "livenessProbe"):
            eventually(lambda: pod.is_well(container, probe))  # noqa: B023 - called at once


def check_metrics(pod: Pod) -> None:
    for name, port in pod.ports.items():
        if name.endswith("metrics"):
            with urlopen(f"http://{pod.address(port)}/metrics", timeout=180) as answer:
                assert b"mediaplane_build_info{" in answer.read()


def work(client: Commands, control: Pod, *data: Pod) -> None:
    """Do a job as a stranger may not, and as one may who got the first token."""
    root = data[0].path(container_of(data[0], "data-plane"), "/media")
    client.environment["MEDIAPLANE_SERVER"] = control.address(50051)
    assert "no token" in client.run("library", "add", "Media", root, code=1).stderr
    (typed,) = re.findall(r"exec POD -c control-plane -- (.*?)\n```", MANUAL, re.DOTALL)
    command = shlex.split(typed.replace("\\\n", " "))
    client.environment["MEDIAPLANE_TOKEN"] = control.execute(
        container_of(control, "control-plane"), command
    )
    client.run("library", "add", "Media", root)
    client.run("scan", "media")
    for number, pod in enumerate(data):
        client.environment["MEDIAPLANE_DATA_ADDRESS"] = pod.address(50052)
        made = client.state / f"{number}.webp"
        client.run("thumbnail", "get", f"{root}/red.jpg", "--output", made)
        with Image.open(made) as thumbnail:
            assert thumbnail.size == (320, 240)


def test_the_sqlite_edition_starts_does_a_job_and_stops_in_time(
    cluster: Cluster, client: Commands
) -> None:
    pod = Pod(cluster, manifests.workload("sqlite", "mediaplane"))
    with pod.running():
        check_probes(pod)
        check_metrics(pod)
        work(client, pod, pod)
        assert pod.terminate() == {"control-plane": (0, ""), "data-plane": (0, "")}


@pytest.mark.usefixtures("postgres_logins")
def test_the_postgresql_edition_starts_does_a_job_and_stops_in_time(
    cluster: Cluster, client: Commands
) -> None:
    control = Pod(cluster, manifests.workload("postgresql", "mediaplane-control-plane"))
    data = Pod(cluster, manifests.workload("postgresql", "mediaplane-data-plane"))
    for early in (control, data):
        code, errors = early.run_to_end(early.spec["containers"][0])
        assert code == 2, "a plane waits for the migration by being started again"
        assert "mediaplane db upgrade" in errors
    migration = Pod(cluster, manifests.workload("postgresql", "mediaplane-migration-0-1-0"))
    assert migration.run_to_end(migration.spec["containers"][0]) == (0, "")
    # It shares the state with the other one, and here the node as well.
    another = Pod(cluster, manifests.workload("postgresql", "mediaplane-data-plane"))
    with control.running(), data.running(), another.running():
        for pod in (control, data, another):
            check_probes(pod)
            check_metrics(pod)
        work(client, control, data, another)
        for pod in (data, another):
            assert pod.terminate() == {"data-plane": (0, "")}
        assert control.terminate() == {"control-plane": (0, "")}
