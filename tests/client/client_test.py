"""client_test.py SPEL-BINARY MODEL

OpenAI's client for Python, unchanged but for base_url, against a real server.
"""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "loadtest"))

import openai
from driver.local_server import LocalServer

_MODEL = "spel-21m"
_PROMPT = "KEY_15=1907; said the old man by the river. ?KEY_15="
_FLAGS = ["--sequences", "2", "--max-seq", "1024"]


class Client(unittest.TestCase):
    binary: Path
    model: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="spel-client-")
        cls.server = LocalServer(cls.binary, cls.model, Path(cls.folder.name) / "log", _FLAGS)
        cls.server.__enter__()
        cls.client = openai.OpenAI(
            base_url=f"{cls.server.url}/v1", api_key="unused", max_retries=0, timeout=60
        )

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.server.stop()
        cls.folder.cleanup()

    def test_models(self) -> None:
        self.assertEqual([model.id for model in self.client.models.list()], [_MODEL])
        self.assertEqual(self.client.models.retrieve(_MODEL).id, _MODEL)

    def test_a_completion_recalls_a_fact_and_streams_the_same(self) -> None:
        request = {"model": _MODEL, "prompt": _PROMPT, "max_tokens": 4, "temperature": 0}
        answer = self.client.completions.create(**request)
        self.assertEqual(answer.choices[0].text, "1907")
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.prompt_tokens, len(_PROMPT))
        details = answer.usage.completion_tokens_details
        self.assertEqual(details.accepted_prediction_tokens, answer.speculation["accepted"])
        chunks = list(self.client.completions.create(stream=True, **request))
        self.assertEqual("".join(chunk.choices[0].text for chunk in chunks), "1907")
        self.assertEqual(chunks[-1].choices[0].finish_reason, "length")
        self.assertEqual(chunks[-1].choices[0].text, "")

    def test_chat_streams_the_same(self) -> None:
        request = {
            "model": _MODEL,
            "messages": [
                {"role": "user", "content": "It was a fine morning, and"},
                {"role": "assistant", "content": None},
                {"role": "user", "content": [{"type": "text", "text": "then"}]},
            ],
            "max_completion_tokens": 24,
            "temperature": 0,
        }
        whole = self.client.chat.completions.create(**request).choices[0]
        self.assertGreater(len(whole.message.content), 0)
        chunks = list(self.client.chat.completions.create(stream=True, **request))
        deltas = [chunk.choices[0].delta for chunk in chunks]
        self.assertEqual(deltas[0].role, "assistant")
        self.assertEqual("".join(delta.content or "" for delta in deltas), whole.message.content)
        self.assertEqual(chunks[-1].choices[0].finish_reason, whole.finish_reason)

    def test_twenty_alternatives_beside_each_token(self) -> None:
        answer = self.client.chat.completions.create(
            model=_MODEL,
            messages=[{"role": "user", "content": "a"}],
            max_tokens=3,
            logprobs=True,
            top_logprobs=20,
        )
        content = answer.choices[0].logprobs.content
        self.assertEqual([len(token.top_logprobs) for token in content], [20, 20, 20])

    def test_equal_prompts_of_one_request_get_texts_of_their_own(self) -> None:
        request = {"model": _MODEL, "max_tokens": 24, "temperature": 1, "seed": 7}
        answer = self.client.completions.create(prompt=["The old man said "] * 20, **request)
        texts = [choice.text for choice in answer.choices]
        self.assertEqual(len(texts), 20)
        self.assertGreater(len(set(texts)), 15)
        alone = self.client.completions.create(prompt="The old man said ", **request)
        self.assertEqual(alone.choices[0].text, texts[0])

    def test_errors_are_the_clients_own_kinds(self) -> None:
        create = self.client.completions.create
        with self.assertRaises(openai.BadRequestError) as bad:
            create(model=_MODEL, prompt="a", temperature=9)
        self.assertEqual(
            (bad.exception.param, bad.exception.code), ("temperature", "invalid_value")
        )
        with self.assertRaises(openai.BadRequestError) as long:
            create(model=_MODEL, prompt="a" * 5000)
        self.assertEqual(long.exception.code, "context_length_exceeded")
        self.assertIn("maximum context length is 1024 tokens", long.exception.message)
        with self.assertRaises(openai.BadRequestError) as unknown:
            create(model=_MODEL, prompt="a", extra_body={"speculation": {"enabled": False}})
        self.assertEqual(unknown.exception.param, "speculation.enabled")
        with self.assertRaises(openai.NotFoundError) as absent:
            create(model="no-such-model", prompt="a")
        self.assertEqual(absent.exception.code, "model_not_found")
        with self.assertRaises(openai.NotFoundError) as path:
            self.client.embeddings.create(model=_MODEL, input="a")
        self.assertEqual(path.exception.code, "unknown_path")


if __name__ == "__main__":
    Client.binary, Client.model = (Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
