"""Rules, alerts and dashboard: valid to Prometheus, about metrics that exist, and explained."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
MANUAL = (ROOT / "docs" / "OPERATIONS.md").read_text()
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "mediaplane.json").read_text())


def rules(file: str) -> list[dict[str, Any]]:
    groups = yaml.safe_load((PROMETHEUS / file).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = rules("alerts.yml")
RECORDED = rules("recording.yml")
NAMES = [rule["alert"] for rule in ALERTS]
SHOWN = [
    (panel["title"], target["expr"])
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", [])
]


def promtool(*arguments: str | Path) -> None:
    if not shutil.which("promtool"):
        pytest.skip("promtool is missing: install it (Debian: prometheus), then run `make check`")
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_and_its_rules_are_valid() -> None:
    promtool("check", "config", PROMETHEUS / "prometheus.yml")


def test_each_alert_fires_when_it_should_and_only_then() -> None:
    promtool("test", "rules", PROMETHEUS / "alerts_test.yml")


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() -> None:
    cases: dict[str, set[bool]] = {}
    for case in yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]:
        for expected in case["alert_rule_test"]:
            cases.setdefault(expected["alertname"], set()).add(bool(expected["exp_alerts"]))
    assert cases == {name: {True, False} for name in NAMES}


@pytest.mark.parametrize("rule", ALERTS, ids=NAMES)
def test_an_alert_says_what_is_wrong_and_where_the_remedy_stands(rule: dict[str, Any]) -> None:
    name = rule["alert"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook"] == f"docs/OPERATIONS.md#{name.lower()}"
    section = re.search(rf"^### {name}\n\n(.+)", MANUAL, re.MULTILINE)
    assert section, f"docs/OPERATIONS.md has no section {name}"
    assert len(section[1]) > 100


def test_the_manual_explains_no_alert_that_does_not_exist() -> None:
    assert re.findall(r"^### (Mediaplane\w+)$", MANUAL, re.MULTILINE) == NAMES


def test_every_expression_of_the_dashboard_is_valid(tmp_path: Path) -> None:
    shown = [
        {"record": f"shown_{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, (_title, expression) in enumerate(SHOWN)
    ]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": shown}]}))
    promtool("check", "rules", file)


@pytest.mark.parametrize(
    ("name", "expression"),
    [*((rule["alert"], rule["expr"]) for rule in ALERTS),
     *((rule["record"], rule["expr"]) for rule in RECORDED),
     *SHOWN],
)  # fmt: skip
def test_an_expression_is_about_metrics_that_exist(name: str, expression: str) -> None:
    known = set(re.findall(r"^\| `((?:mediaplane|grpc)_\w+)", MANUAL, re.MULTILINE))
    recorded = {rule["record"] for rule in RECORDED}
    for metric in re.findall(r"[\w:]*(?:mediaplane|grpc_server)_[\w:]+", expression):
        plain = re.sub(r"_(bucket|sum|count)$", "", metric)
        assert metric in recorded or plain in known, metric


def test_every_metric_is_on_the_dashboard_or_in_a_rule() -> None:
    known = set(re.findall(r"^\| `((?:mediaplane|grpc)_\w+)", MANUAL, re.MULTILINE))
    used = " ".join([*(rule["expr"] for rule in ALERTS + RECORDED), *(one for _, one in SHOWN)])
    unused = {metric for metric in known if metric not in used}
    assert unused == set()


def test_panels_have_titles_descriptions_and_places_of_their_own() -> None:
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    assert all(panel["title"] and panel["description"] for panel in panels)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
