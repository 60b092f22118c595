#!/usr/bin/env python3
"""Asks a real Prometheus every query of the dashboard after a load; fails on an empty answer.

docker/dashboard_test.py --server build/release/spel --model engine/models/spel-21m

Starts SPEL and Debian's prometheus with the shipped configuration (only the target's address is
changed), loads SPEL with loadtest/load.py, then evaluates all panels, both template variables and
the health of all rules. Exit status 77 (skipped) without prometheus or python3-aiohttp.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCKER = Path(__file__).resolve().parent
ROOT = DOCKER.parent
sys.path.insert(0, str(ROOT / "loadtest"))

from driver.local_server import LocalServer  # noqa: E402

SKIPPED = 77
_SCRAPES_SECONDS = 12.0  # for the last scrape and the rules after it


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Prometheus:
    """Debian's prometheus with our configuration, on a free port of the loopback."""

    def __init__(self, target: str, folder: Path) -> None:
        config = (DOCKER / "prometheus/prometheus.yml").read_text()
        self._address = f"127.0.0.1:{free_port()}"
        for shipped, here in (("spel:8080", target), ("localhost:9090", self._address)):
            if shipped not in config:
                raise RuntimeError(f"prometheus.yml no longer scrapes {shipped}")
            config = config.replace(shipped, here)
        (folder / "prometheus.yml").write_text(config)
        shutil.copytree(DOCKER / "prometheus/rules", folder / "rules")
        self._folder = folder

    def __enter__(self) -> Prometheus:
        command = [
            "prometheus",
            f"--config.file={self._folder}/prometheus.yml",
            f"--storage.tsdb.path={self._folder}/data",
            f"--web.listen-address={self._address}",
        ]
        self._log = (self._folder / "prometheus.log").open("w")
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)
        for _ in range(240):
            try:
                self._get("/-/ready")
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        self.__exit__()
        raise RuntimeError((self._folder / "prometheus.log").read_text()[-2000:])

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def _get(self, path: str, **query: str) -> bytes:
        url = f"http://{self._address}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=60) as response:
            return bytes(response.read())

    def api(self, path: str, **query: str) -> Any:
        return json.loads(self._get(f"/api/v1/{path}", **query))["data"]

    def values(self, expression: str, since: float) -> list[float]:
        """All finite values of the range from `since` to now."""
        result = self.api(
            "query_range", query=expression, start=f"{since}", end=f"{time.time()}", step="5"
        )["result"]
        values = [float(value) for series in result for _, value in series["values"]]
        return [value for value in values if math.isfinite(value)]


def write_note(url: str) -> None:
    body = json.dumps({"text": "KEY_15=6583 said the old man by the river."}).encode()
    with urllib.request.urlopen(f"{url}/v1/notebanks/dashboard/write", body, timeout=60) as answer:
        answer.read()


def panel_queries() -> Iterator[tuple[str, str, str]]:
    """(panel, legend, expression) with the variables filled in."""
    dashboard = json.loads((DOCKER / "grafana/dashboards/spel.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in (
                ("$job", "spel"),
                ("$instance", ".*"),
                ("$__rate_interval", "1m"),
            ):
                expression = expression.replace(name, value)
            if "$" in expression:
                raise RuntimeError(f"{panel['title']}: unknown variable in {expression}")
            yield panel["title"], target["legendFormat"], expression


def check_queries(prometheus: Prometheus, since: float) -> int:
    """Prints a line for each query; how many were empty."""
    empty = 0
    for title, legend, expression in panel_queries():
        values = prometheus.values(expression, since)
        empty += not values
        seen = f"{values[-1]:12.5g}  {len(values):4d} values" if values else "EMPTY"
        print(f"{title:36} {legend:28} {seen}")
        if not values:
            print(f"    {expression}")
    return empty


def check_rules(prometheus: Prometheus) -> int:
    rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    bad = [rule for rule in rules if rule["health"] != "ok"]
    for rule in bad:
        print(f"rule {rule['name']}: {rule['health']} {rule.get('lastError', '')}")
    print(f"{len(rules)} rules, {len(bad)} unhealthy")
    return len(bad) + (not rules)


def check_variables(prometheus: Prometheus) -> int:
    jobs = prometheus.api("label/job/values", **{"match[]": "spel_build_info"})
    instances = prometheus.api(
        "label/instance/values", **{"match[]": 'spel_build_info{job="spel"}'}
    )
    print(f"job: {jobs}, instance: {instances}")
    return (jobs != ["spel"]) + (len(instances) != 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=ROOT / "engine/models/spel-21m")
    parser.add_argument("--seconds", type=float, default=25)
    options = parser.parse_args()
    if not shutil.which("prometheus"):
        print("skipped: no prometheus here (Debian: apt-get install prometheus)")
        return SKIPPED
    if not importlib.util.find_spec("aiohttp"):
        print("skipped: no aiohttp here (Debian: apt-get install python3-aiohttp)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="spel-dashboard-") as name:
        folder = Path(name)
        with (
            LocalServer(options.server, options.model, folder / "server.log", []) as server,
            Prometheus(server.url.removeprefix("http://"), folder) as prometheus,
        ):
            since = time.time()
            load = [sys.executable, str(ROOT / "loadtest/load.py"), "smoke"]
            load += ["--base-url", server.url, "--seconds", f"{options.seconds}", "--out", name]
            # Whether the load passed its thresholds is another test's question.
            subprocess.run(load, check=False, stdout=subprocess.DEVNULL)
            # The load wrote its bank before the first scrape, where no rate can see it.
            write_note(server.url)
            time.sleep(_SCRAPES_SECONDS)
            faults = check_variables(prometheus) + check_rules(prometheus)
            faults += check_queries(prometheus, since)
    print("every query answers" if not faults else f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
