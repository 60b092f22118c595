"""The fidelity run's own tests: what it must find, and what it must not."""

from __future__ import annotations

import json
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "loadtest"))

import aiohttp
from aiohttp import web

import fidelity
from driver.cases import make_case


def honest_answer(body: dict[str, Any]) -> dict[str, Any]:
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.25], "top_logprobs": [], "text_offset": [0]}
    return {
        "choices": [
            {
                "index": 0,
                "text": "a",
                "token_ids": [97],
                "spel": {"text_offsets": [0], "draft_positions": [-1]},
                "logprobs": logprobs if "logprobs" in body else None,
                "finish_reason": "length",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        "speculation": {"proposed": 0, "accepted": 0},
    }


class ScriptedServer:
    """Answers as `answer` says, whole or in one chunk."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._answer = answer
        self.url = ""

    async def __aenter__(self) -> ScriptedServer:
        app = web.Application()
        app.router.add_post("/v1/completions", self._complete)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        answer = self._answer(body)
        if not body.get("stream"):
            return web.json_response(answer)
        text = f"data: {json.dumps(answer)}\n\ndata: [DONE]\n\n"
        return web.Response(text=text, content_type="text/event-stream")


class FidelityTest(unittest.IsolatedAsyncioTestCase):
    async def tally(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> fidelity.Tally:
        async with ScriptedServer(answer) as server, aiohttp.ClientSession() as session:
            run = fidelity.Fidelity(session, server.url, 1, fidelity.HALF_THE_WAYS)
            await run.run(0, 12)
            return run.tally

    async def test_equal_answers_are_no_difference(self) -> None:
        tally = await self.tally(honest_answer)
        self.assertEqual((tally.requests, tally.answers, tally.differences), (12, 48, []))

    async def test_a_streamed_text_that_differs_is_found(self) -> None:
        def answer(body: dict[str, Any]) -> dict[str, Any]:
            result = honest_answer(body)
            result["choices"][0]["text"] += "b" if body.get("stream") else ""
            return result

        tally = await self.tally(answer)
        self.assertEqual(len(tally.differences), 24)  # two of the four ways, of each request
        self.assertIn("choices.0.text: 'a' and 'ab'", tally.differences[0]["what"])
        self.assertIn("--first 0 --requests 8", tally.differences[0]["reproduce"])

    async def test_the_last_digit_of_a_logprob_counts(self) -> None:
        def answer(body: dict[str, Any]) -> dict[str, Any]:
            result = honest_answer(body)
            if "logprobs" in body and body["speculation"].get("mode") != "off":
                result["choices"][0]["logprobs"]["token_logprobs"] = [-0.25000000000000006]
            return result

        found = (await self.tally(answer)).differences
        self.assertGreater(len(found), 0)
        self.assertTrue(all("logprobs.token_logprobs[0]" in one["what"] for one in found))
        self.assertTrue(all(one["way"].startswith("drafted") for one in found))

    async def test_an_error_is_a_difference(self) -> None:
        def answer(body: dict[str, Any]) -> dict[str, Any]:
            return {"error": "no"} if body.get("stream") else honest_answer(body)

        found = (await self.tally(answer)).differences
        self.assertEqual({one["what"] for one in found}, {"no"})


class CasesTest(unittest.TestCase):
    def test_cases_come_again_and_cover_what_they_should(self) -> None:
        cases = [make_case(7, number) for number in range(400)]
        self.assertEqual(cases[3], make_case(7, 3))
        self.assertNotEqual(cases[3], make_case(8, 3))
        self.assertEqual({case["speculation"]["k"] for case in cases}, set(range(17)))
        self.assertEqual({case["temperature"] for case in cases}, {0, 0.8, 1.3})
        self.assertEqual({case.get("logprobs") for case in cases}, {None, 0, 1, 2, 3, 4, 5})
        self.assertEqual({case["max_tokens"] for case in cases}, set(range(33)))
        self.assertTrue(all(1 <= len(case["prompt"]) <= 300 for case in cases))
        for member in ("stop", "stop_token_ids", "echo", "n", "logit_bias", "repetition_penalty"):
            self.assertGreater(sum(member in case for case in cases), 5, member)


if __name__ == "__main__":
    unittest.main()
