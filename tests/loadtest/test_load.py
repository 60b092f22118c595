"""The load test's own tests: python3 -m unittest discover -s tests/loadtest."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "loadtest"), str(Path(__file__).parent)]

import aiohttp

import load
from driver import client, report, summary
from driver.client import Ask, Target
from driver.histogram import LogHistogram
from driver.prompts import Kind, PromptSource
from driver.runner import Run, Runner
from driver.sample import Outcome, Sample
from driver.scenario import SCENARIOS, Arrivals, soak
from driver.watch import Look, parse
from fake_server import FakeServer

TARGET = Target("http://127.0.0.1:1", "fake", is_spel=True, has_notebank=False)


def answer(text: str, key: str = "a/1", **members: object) -> Sample:
    sample = Sample("prose", 0.0, Outcome.OK, 200, 1.0, ttft=0.5, tokens=3, text=text, text_key=key)
    for name, value in members.items():
        setattr(sample, name, value)
    return sample


class HistogramTest(unittest.TestCase):
    def test_percentiles_are_within_two_percent(self) -> None:
        rng = random.Random(1)
        values = sorted(rng.lognormvariate(0, 1) for _ in range(5000))
        histogram = summary.histogram(values)
        for percent in (50, 95, 99):
            exact = values[math.ceil(len(values) * percent / 100) - 1]
            self.assertAlmostEqual(histogram.percentile(percent) / exact, 1, delta=0.02)

    def test_nothing_and_nonsense(self) -> None:
        histogram = LogHistogram()
        histogram.add(math.nan)
        histogram.add(-1)
        self.assertIsNone(histogram.percentile(50))
        self.assertIsNone(histogram.mean)


class PromptTest(unittest.TestCase):
    def test_the_same_number_gives_the_same_prompt(self) -> None:
        for kind in Kind:
            first, again = (PromptSource(3, variety=5).make(kind, n) for n in (2, 7))
            self.assertEqual(first, again)
            self.assertTrue(first.text.isascii() and first.text)

    def test_a_recall_prompt_holds_its_answer(self) -> None:
        prompt = PromptSource(3).make(Kind.RECALL, 1)
        asked = prompt.text[prompt.text.rindex("?") + 1 :]
        self.assertIn(f"{asked}{prompt.expected} ", prompt.text)

    def test_a_bank_holds_what_its_prompts_ask(self) -> None:
        source = PromptSource(3)
        prompt = source.make(Kind.NOTEBANK, 4)
        self.assertIn(prompt.text[1:] + prompt.expected, source.bank_text())


class SummaryTest(unittest.TestCase):
    def test_finds_texts_that_differ(self) -> None:
        same = [answer("x"), answer("x"), answer("y", key="b/1")]
        self.assertEqual(summary.texts_that_differ(same), 0)
        self.assertEqual(summary.texts_that_differ([*same, answer("z")]), 1)

    def test_a_figure_that_was_not_measured_fails(self) -> None:
        verdicts = summary.judge({}, {"max_ttft_p99_ms": 100}, is_spel=True)
        self.assertFalse(verdicts[0].passed)

    def test_limits_hold_on_their_side(self) -> None:
        figures = {"ttft_p99_ms": 100, "answers": 3}
        for name, limit, passed in (
            ("max_ttft_p99_ms", 100, True),
            ("max_ttft_p99_ms", 99, False),
            ("min_answers", 3, True),
            ("min_answers", 4, False),
        ):
            self.assertEqual(summary.judge(figures, {name: limit}, True)[0].passed, passed)

    def test_slope_and_growth(self) -> None:
        looks = [
            Look(10.0 * i, {"rss": 1e6 + 1000 * i, "fds": 20 + i % 3, "connections": i % 3})
            for i in range(30)
        ]
        self.assertAlmostEqual(summary.slope_per_hour(looks, "rss"), 360_000, places=3)
        self.assertEqual(summary.growth(looks, "fds", less="connections"), 0)
        self.assertIsNone(summary.slope_per_hour(looks[:3], "rss"))

    def test_drift_compares_the_halves(self) -> None:
        samples = [answer("x", began=float(t), ttft=0.1 if t < 50 else 0.2) for t in range(100)]
        self.assertAlmostEqual(summary.drift(samples, 0, 100), 1.0, delta=0.05)

    def test_refusals_and_malformed_requests_are_no_errors(self) -> None:
        run = Run(SCENARIOS["smoke"], TARGET, seconds=1)
        run.samples = [
            answer("x"),
            Sample("prose", 0, Outcome.REFUSED, 503, retry_after=True),
            Sample("malformed", 0, Outcome.REJECTED, 400),
        ]
        figures = summary.summarise(run)["figures"]
        self.assertEqual(figures["error_share"], 0)
        self.assertEqual(figures["refused_share"], 0.5)
        self.assertEqual(figures["refused_without_retry_after"], 0)


class WatchTest(unittest.TestCase):
    def test_reads_what_it_follows(self) -> None:
        page = '# HELP x y\nprocess_open_fds 11\nother{a="b"} 3\nspel_num_requests_running 2\n'
        self.assertEqual(parse(page), {"fds": 11, "running": 2})


class CommandTest(unittest.TestCase):
    def test_only_loopback_without_being_told(self) -> None:
        self.assertTrue(load.is_loopback("http://127.0.0.1:80"))
        self.assertTrue(load.is_loopback("http://[::1]:80"))
        self.assertFalse(load.is_loopback("http://192.0.2.1:80"))

    def test_flags_change_the_scenario(self) -> None:
        options = load.parse_arguments(
            ["closed", "--seconds", "3", "--rate", "2", "--threshold", "min_answers=7"]
        )
        scenario = load.scenario_of(options)
        self.assertEqual((scenario.seconds, scenario.arrivals.rate), (3, 2))
        self.assertEqual(scenario.thresholds["min_answers"], 7)
        with self.assertRaises(argparse.ArgumentTypeError):
            load.parse_threshold("nothing=1")

    def test_soak_takes_hours(self) -> None:
        self.assertEqual(soak(2).seconds, 7200)
        self.assertEqual(soak(2).settle_seconds, 600)
        self.assertEqual(load.scenario_of(load.parse_arguments(["soak", "0.1"])).seconds, 360)


class FakeServerTest(unittest.IsolatedAsyncioTestCase):
    async def ask(self, server: FakeServer, **members: object) -> Sample:
        async with aiohttp.ClientSession() as session:
            target = await client.discover(session, server.url, "")
            self.assertFalse(target.is_spel)
            prompt = PromptSource(1).make(Kind.PROSE, 0)
            now = time.perf_counter()
            ask = replace(Ask(prompt, 4), **members)
            return await client.complete(session, target, ask, "bank", now, now)

    async def test_measures_a_stream(self) -> None:
        async with FakeServer() as server:
            sample = await self.ask(server)
            self.assertEqual((sample.outcome, sample.text, sample.tokens), (Outcome.OK, "abcd", 4))
            self.assertEqual((sample.proposed, sample.accepted), (4, 3))
            self.assertTrue(0 < sample.ttft < sample.seconds)
            self.assertNotIn("return_token_ids", server.bodies[0])

    async def test_a_stream_without_an_end_is_an_error(self) -> None:
        async with FakeServer(finish=False) as server:
            sample = await self.ask(server)
            self.assertEqual(sample.outcome, Outcome.ERROR)
            self.assertIn("[DONE]", sample.error)

    async def test_a_refusal_is_not_an_error(self) -> None:
        async with FakeServer(status=503) as server:
            sample = await self.ask(server)
            self.assertEqual((sample.outcome, sample.retry_after), (Outcome.REFUSED, True))
        async with FakeServer(status=500) as server:
            self.assertEqual((await self.ask(server)).outcome, Outcome.ERROR)

    async def test_hangs_up_when_told(self) -> None:
        async with FakeServer() as server:
            for chunks in (0, 1):
                sample = await self.ask(server, hang_up_after=chunks)
                self.assertEqual(sample.outcome, Outcome.CUT)

    async def test_runs_closed_and_open_and_reports(self) -> None:
        for arrivals in (Arrivals(clients=2), Arrivals(rate=20)):
            scenario = replace(
                SCENARIOS["smoke"], seconds=1, arrivals=arrivals, slow_share=0, malformed_share=0
            )
            async with FakeServer() as server, aiohttp.ClientSession() as session:
                target = await client.discover(session, server.url, "")
                with contextlib.redirect_stderr(io.StringIO()) as progress:
                    run = await Runner(session, target, scenario, 1, 0.2).run()
            self.assertIn("answered", progress.getvalue())
            figures = summary.summarise(run)
            verdicts = summary.judge(figures["figures"], scenario.thresholds, is_spel=False)
            self.assertEqual([v.name for v in verdicts if not v.passed], [], figures)
            page = report.html(run, figures, verdicts, "now")
            self.assertIsNone(re.search(r"(src|href)=", page), "the report fetches something")
            self.assertGreater(page.count("<svg"), 3)
            json.dumps(figures)
            self.assertIn("threshold", report.table(figures, verdicts))


class MainTest(unittest.TestCase):
    def test_a_server_that_is_not_there_is_status_2(self) -> None:
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run(
                [sys.executable, load.__file__, "--base-url", "http://127.0.0.1:1", "--out", out],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("load.py:", done.stderr)


if __name__ == "__main__":
    unittest.main()
