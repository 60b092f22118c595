#!/usr/bin/env python3
"""Load tests for SPEL and other OpenAI-compatible servers.

load.py SCENARIO --server build/release/spel --model engine/models/spel-21m
load.py SCENARIO --base-url http://127.0.0.1:8080
load.py soak HOURS …

Streams completions with open or closed arrivals, measures what a user feels, and compares it with
the scenario's thresholds. Writes SCENARIO.json and SCENARIO.html, prints a table.
Exit status: 0 passed, 1 a threshold missed, 2 could not run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import json
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from driver import report, summary
from driver.client import discover
from driver.local_server import LocalServer
from driver.runner import Run, Runner
from driver.scenario import SCENARIOS, THRESHOLDS, Arrivals, Scenario, soak


def parse_threshold(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in THRESHOLDS:
        raise argparse.ArgumentTypeError(
            f"no such threshold: {name} (there are {', '.join(THRESHOLDS)})"
        )
    return name, float(value)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    scenarios = "\n".join(f"  {s.name:8} {s.about}" for s in SCENARIOS.values())
    parser = argparse.ArgumentParser(
        "load.py",
        description="Load tests for OpenAI-compatible servers; nothing but loopback by default.",
        epilog=f"scenarios:\n{scenarios}\n\nthresholds: {', '.join(THRESHOLDS)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", nargs="?", default="smoke", choices=SCENARIOS)
    parser.add_argument("hours", nargs="?", type=float, help="of a soak (default 0.5)")
    where = parser.add_argument_group("the server")
    where.add_argument("--base-url", help="one that runs already, as http://127.0.0.1:8080")
    where.add_argument("--server", type=Path, help="a spel binary to start and stop")
    where.add_argument("--model", type=Path, default=Path("engine/models/spel-21m"))
    where.add_argument("--server-flag", action="append", default=[], metavar="FLAG=VALUE")
    where.add_argument("--api-key", default="")
    where.add_argument(
        "--allow-remote", action="store_true", help="load a server on another machine"
    )
    what = parser.add_argument_group("the load")
    what.add_argument("--seconds", type=float)
    what.add_argument("--clients", type=int, help="closed arrivals with so many clients")
    what.add_argument("--rate", type=float, help="open arrivals, so many a second")
    what.add_argument("--max-tokens", type=int, help="the most a request asks for")
    what.add_argument("--seed", type=int, default=1)
    what.add_argument(
        "--threshold",
        type=parse_threshold,
        action="append",
        default=[],
        metavar="NAME=VALUE",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/load"), help="folder for the reports"
    )
    return parser.parse_args(arguments)


def scenario_of(options: argparse.Namespace) -> Scenario:
    scenario = SCENARIOS[options.scenario]
    if options.hours is not None:
        if options.scenario != "soak":
            raise RuntimeError("only soak takes hours")
        scenario = soak(options.hours)
    if options.seconds is not None:
        settle = min(scenario.settle_seconds, options.seconds / 3)
        scenario = replace(scenario, seconds=options.seconds, settle_seconds=settle)
    if options.clients is not None:
        scenario = replace(scenario, arrivals=Arrivals(clients=options.clients))
    if options.rate is not None:
        scenario = replace(scenario, arrivals=Arrivals(rate=options.rate))
    if options.max_tokens is not None:
        low, _ = scenario.max_tokens
        scenario = replace(scenario, max_tokens=(min(low, options.max_tokens), options.max_tokens))
    return replace(scenario, thresholds=scenario.thresholds | dict(options.threshold))


def is_loopback(base_url: str) -> bool:
    parts = urlsplit(base_url)
    addresses = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    return all(ipaddress.ip_address(address[4][0]).is_loopback for address in addresses)


async def run_scenario(base_url: str, scenario: Scenario, options: argparse.Namespace) -> Run:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        target = await discover(session, base_url, options.api_key)
        every = min(30.0, max(2.0, scenario.seconds / 60))
        return await Runner(session, target, scenario, options.seed, every).run()


def write_reports(run: Run, options: argparse.Namespace) -> bool:
    """The files and the table; did every threshold hold?"""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    figures = summary.summarise(run)
    verdicts = summary.judge(figures["figures"], run.scenario.thresholds, run.target.is_spel)
    document = {
        "when": when,
        "scenario": asdict(run.scenario),
        "target": {
            "base_url": run.target.base_url,
            "model": run.target.model,
            "spel": run.target.is_spel,
        },
        "passed": all(verdict.passed for verdict in verdicts),
        "thresholds": [asdict(verdict) for verdict in verdicts],
        **figures,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / run.scenario.name
    stem.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    stem.with_suffix(".html").write_text(report.html(run, figures, verdicts, when))
    print(report.table(figures, verdicts))
    print(f"\n{'passed' if document['passed'] else 'FAILED'}: {stem}.json, {stem}.html")
    return bool(document["passed"])


def main() -> int:
    options = parse_arguments()
    if (options.base_url is None) == (options.server is None):
        raise RuntimeError("either --base-url or --server is needed")
    scenario = scenario_of(options)
    options.out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        server = None
        base_url = (options.base_url or "").rstrip("/").removesuffix("/v1")
        if options.server is not None:
            log = options.out / "server.log"
            server = LocalServer(options.server, options.model, log, options.server_flag)
            base_url = stack.enter_context(server).url
        if not options.allow_remote and not is_loopback(base_url):
            raise RuntimeError(f"{base_url} is not on this machine; --allow-remote if you mean it")
        run = asyncio.run(run_scenario(base_url, scenario, options))
    passed = write_reports(run, options)
    if server is not None and server.process.returncode != 0:
        status = server.process.returncode
        print(f"the server ended with status {status}; see {options.out}/server.log")
        passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError, aiohttp.ClientError) as error:
        print(f"load.py: {error}", file=sys.stderr)
        sys.exit(2)
