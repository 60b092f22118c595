"""python3 -m abuse [SCENARIO…] --server build/release/spel [--quick] [--json]

Exit status: 0 every goal met, 1 a goal missed, 2 could not run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import time
from pathlib import Path

from abuse.figures import QUICK_SLACK, Figure
from abuse.server import Context

SCENARIOS = (
    "health",
    "busy",
    "overload",
    "slow_readers",
    "slow_senders",
    "descriptors",
    "shutdown",
    "signals",
    "allocation",
    "cancel",
    "malformed",
    "bodies",
    "metrics",
    "overhead",
)


def parse_arguments() -> argparse.Namespace:
    modules = {name: importlib.import_module(f"abuse.{name}") for name in SCENARIOS}
    scenarios = "\n".join(f"  {name:14} {module.ABOUT}" for name, module in modules.items())
    parser = argparse.ArgumentParser(
        "abuse",
        description="Bad clients, too many clients, bad moments; starts servers of its own.",
        epilog=f"scenarios (all, if none is named):\n{scenarios}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO")
    parser.add_argument("--server", type=Path, required=True, help="the spel binary")
    parser.add_argument("--model", type=Path, default=Path("engine/models/spel-21m"))
    parser.add_argument("--bare", type=Path, help="the bare_http_server program, for health")
    parser.add_argument(
        "--failing-malloc", type=Path, help="the failing_malloc library, for allocation"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small and short; timing goals with "
        f"{QUICK_SLACK:g} times the slack, for a machine that does other things",
    )
    parser.add_argument("--seconds", type=float, help="for scenarios that can be longer or shorter")
    parser.add_argument("--requests", type=int, help="for scenarios that count, such as malformed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object a figure and line")
    parser.add_argument("--out", type=Path, default=Path("build/abuse"), help="for logs")
    options = parser.parse_args()
    if unknown := set(options.scenario) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; see --help")
    return options


def show(scenario: str, figures: list[Figure], seconds: float, options: argparse.Namespace) -> None:
    if not options.json:
        print(f"{scenario} ({seconds:.0f} s)")
        for figure in figures:
            print(figure.line(options.quick), flush=True)
        return
    for figure in figures:
        relation, bound = figure.goal or (None, None)
        line = {
            "scenario": scenario,
            "figure": figure.name,
            "value": figure.value,
            "unit": figure.unit,
            "relation": relation,
            "goal": bound,
            "passed": figure.passed(options.quick),
        }
        print(json.dumps(line), flush=True)


def main() -> int:
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # ours and the server's
    context = Context(
        options.server,
        options.model,
        options.bare,
        options.failing_malloc,
        options.out,
        options.quick,
        options.seconds,
        options.requests,
        options.seed,
    )
    missed = []
    for scenario in options.scenario or SCENARIOS:
        began = time.monotonic()
        figures = importlib.import_module(f"abuse.{scenario}").run(context)
        show(scenario, figures, time.monotonic() - began, options)
        missed += [f"{scenario}.{f.name}" for f in figures if not f.passed(options.quick)]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError) as error:
        print(f"abuse: {error}", file=sys.stderr)
        sys.exit(2)
