"""A run's summary as a table for the terminal and as one HTML file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from html import escape
from typing import Any

from driver.histogram import LogHistogram
from driver.plots import Point, Series, plot
from driver.runner import Run
from driver.sample import Outcome, Sample
from driver.summary import Verdict, histogram

_COLUMNS = (
    ("requests", "requests", "{:.0f}"),
    ("answers", "answers", "{:.0f}"),
    ("tokens_per_second", "tok/s", "{:.1f}"),
    ("tokens_per_second_each", "tok/s each", "{:.1f}"),
    ("acceptance", "accepted", "{:.0%}"),
    ("speedup", "speedup", "{:.2f}"),
    ("recall_exact_share", "recalled", "{:.0%}"),
    ("ttft_p50_ms", "ttft p50", "{:.0f}"),
    ("ttft_p99_ms", "p99", "{:.0f}"),
    ("itl_p50_ms", "itl p50", "{:.1f}"),
    ("itl_p99_ms", "p99", "{:.1f}"),
    ("e2e_p50_ms", "whole p50", "{:.0f}"),
    ("e2e_p99_ms", "p99", "{:.0f}"),
)
_BUCKETS = 60
_DOTS_MAX = 1500

_STYLE = """
:root{color-scheme:light dark;--bg:light-dark(#fff,#14181d);--fg:light-dark(#16191e,#e8ebf0);
--mute:light-dark(#525b68,#a7b0bd);--line:light-dark(#dde1e7,#2c333d);
--s0:light-dark(#1769aa,#7bb8ff);--s1:light-dark(#b3410b,#ffad70);--s2:light-dark(#1b7340,#77d59a);
--s3:light-dark(#8a2ca8,#dc9bf2);--s4:light-dark(#7a6200,#e3c44d);--s5:light-dark(#a3261d,#ff9c92)}
body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;
max-width:86rem;margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}
td,th{padding:.25rem .7rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
td:first-child,th:first-child{text-align:left}th{color:var(--mute);font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1rem}
figure{margin:0;border:1px solid var(--line);border-radius:.5rem;padding:.6rem}
figcaption{font-weight:600}
.legend{font-weight:400;margin-left:.8rem}.legend span{margin-right:.8rem}
svg{width:100%;height:auto}svg text{fill:var(--mute);font-size:11px}svg line{stroke:var(--line)}
polyline{fill:none;stroke-width:1.8}
.pass{color:var(--s2);font-weight:600}.fail{color:var(--s5);font-weight:600}
"""
_SERIES_STYLE = "".join(
    f"polyline.s{i}{{stroke:var(--s{i})}}.dots.s{i}{{fill:var(--s{i})}}"
    f".legend .s{i}{{color:var(--s{i})}}"
    for i in range(6)
)


def _cell(figures: Mapping[str, Any], key: str, form: str) -> str:
    value = figures.get(key)
    return "–" if value is None else form.format(value)


def _rows(summary: dict[str, Any]) -> list[list[str]]:
    named = {**summary["by_kind"], "all": summary["figures"]}
    return [
        [name, *(_cell(figures, key, form) for key, _, form in _COLUMNS)]
        for name, figures in named.items()
    ]


def _verdict_row(verdict: Verdict) -> list[str]:
    measured = "not measured" if verdict.measured is None else f"{verdict.measured:.4g}"
    return [
        verdict.name,
        f"{verdict.limit:g}",
        measured,
        "pass" if verdict.passed else "FAIL",
    ]


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def table(summary: dict[str, Any], verdicts: list[Verdict]) -> str:
    """For the terminal."""
    outcomes = ", ".join(f"{name} {count}" for name, count in summary["outcomes"].items() if count)
    parts = [
        _aligned([["", *(title for _, title, _ in _COLUMNS)], *_rows(summary)]),
        f"\n{outcomes}; times in ms",
    ]
    parts += [f"note: {remark}" for remark in summary["remarks"]]
    parts += [f"{count} x {error}" for error, count in summary["errors"]]
    if verdicts:
        rows = [["threshold", "limit", "measured", ""], *map(_verdict_row, verdicts)]
        parts.append("\n" + _aligned(rows))
    return "\n".join(parts)


def _html_table(head: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        marks = {"pass": ' class="pass"', "FAIL": ' class="fail"'}
        return (
            "<tr>"
            + "".join(f"<{tag}{marks.get(c, '')}>{escape(c)}</{tag}>" for c in cells)
            + "</tr>"
        )

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def _thin(points: list[Point]) -> list[Point]:
    return points[:: max(1, len(points) // _DOTS_MAX)]


def _rates(run: Run) -> str:
    width = max(run.seconds / _BUCKETS, 0.5)
    tokens: dict[int, float] = defaultdict(float)
    outcomes: dict[Outcome, Counter[int]] = defaultdict(Counter)
    for sample in run.samples:
        end = int((sample.began + sample.seconds) / width)
        outcomes[sample.outcome][end] += 1
        for bucket in range(int(sample.began / width), end + 1):  # spread over its time
            tokens[bucket] += sample.tokens / (end - int(sample.began / width) + 1)
    buckets = range(int(run.seconds / width) + 1)

    def curve(counts: Mapping[int, float]) -> list[Point]:
        return [(bucket * width, counts.get(bucket, 0) / width) for bucket in buckets]

    endings = [Series(outcome.value, curve(counts)) for outcome, counts in outcomes.items()]
    return plot("Tokens a second", "s", "", [Series("all", curve(tokens))]) + plot(
        "Requests ended a second", "s", "", endings
    )


def _latencies(run: Run) -> str:
    answers = [sample for sample in run.samples if sample.ttft is not None]
    kinds: dict[str, list[Sample]] = defaultdict(list)
    for sample in answers:
        kinds[sample.kind].append(sample)
    dots = [
        Series(kind, _thin([(s.began, 1000 * (s.ttft or 0)) for s in samples]), dots=True)
        for kind, samples in sorted(kinds.items())
    ]

    def curves(of: Mapping[str, LogHistogram]) -> list[Series]:
        return [
            Series(kind, [(1000 * value, 100 * share) for value, share in values.curve()])
            for kind, values in of.items()
        ]

    first = {kind: histogram([s.ttft or 0 for s in kinds[kind]]) for kind in sorted(kinds)}
    gaps: dict[str, LogHistogram] = {kind: LogHistogram() for kind in sorted(kinds)}
    for sample in answers:
        gaps[sample.kind].merge(sample.gaps)
    return (
        plot("Time to the first token", "s into the run", "ms", dots)
        + plot(
            "Time to the first token, share at most",
            "ms",
            "%",
            curves(first),
            log_x=True,
        )
        + plot("Between tokens, share at most", "ms", "%", curves(gaps), log_x=True)
    )


def _server(run: Run) -> str:
    looks = run.watch.looks if run.watch else []

    def curve(name: str, scale: float = 1.0) -> list[Point]:
        return [
            (look.seconds, look.figures[name] * scale) for look in looks if name in look.figures
        ]

    if not looks:
        return "<p>This server has no /metrics.</p>"
    return "".join(
        (
            plot(
                "Running and waiting",
                "s",
                "",
                [Series(n, curve(n)) for n in ("running", "waiting")],
            ),
            plot("Resident memory", "s", "MiB", [Series("rss", curve("rss", 2**-20))]),
            plot(
                "Descriptors and threads",
                "s",
                "",
                [Series(n, curve(n)) for n in ("fds", "threads")],
            ),
            plot(
                "Acceptance, c, v",
                "s",
                "",
                [Series(n, curve(n)) for n in ("acceptance", "c", "v")],
            ),
        )
    )


def html(run: Run, summary: dict[str, Any], verdicts: list[Verdict], when: str) -> str:
    """The whole report; needs nothing but itself."""
    scenario = run.scenario
    title = f"{scenario.name}: {run.target.model} at {run.target.base_url}"
    facts = f"{when}, {run.seconds:.0f} s. {scenario.about}."
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in summary["remarks"])
    errors = [[error, str(count)] for error, count in summary["errors"]]
    outcomes = [[name, str(count)] for name, count in summary["outcomes"].items() if count]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{_STYLE}{_SERIES_STYLE}</style></head><body>
<h1>{escape(title)}</h1><p>{escape(facts)}</p><ul>{remarks}</ul>
<h2>Thresholds</h2>{_html_table(["", "limit", "measured", ""], [_verdict_row(v) for v in verdicts])}
<h2>Figures</h2>{_html_table(["times in ms", *(t for _, t, _ in _COLUMNS)], _rows(summary))}
<h2>Outcomes</h2>{_html_table(["", "requests"], outcomes)}
{"<h2>Errors</h2>" + _html_table(["", "times"], errors) if errors else ""}
<h2>Over time</h2><div class="plots">{_rates(run)}{_latencies(run)}</div>
<h2>The server's own figures</h2><div class="plots">{_server(run)}</div>
</body></html>
"""
