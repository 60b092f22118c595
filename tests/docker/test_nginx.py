#!/usr/bin/env python3
"""test_nginx.py SPEL-BINARY MODEL FOLDER

Runs Debian's nginx with docker/scaling/nginx.conf before two replicas: who is let in, and which
replica a request goes to. Only addresses are changed, and a field is added to answers that names
the replica. Exit status 77 (skipped) where nginx is not installed.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "loadtest"))

from driver.local_server import LocalServer

_SMALL = ["--sequences", "1", "--max-seq", "1024", "--prefix-cache", "0", "--target-threads", "1"]
_OUTSIDE = "127.0.0.1:8080"  # What a browser has in its address bar.
_TEXT = "It was a fine morning, and the old man "  # Longer than what is hashed.


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Nginx:
    """The shipped configuration on a Unix socket, before these replicas."""

    def __init__(self, program: str, ports: list[int], folder: Path) -> None:
        self._program = program
        self._folder = folder
        self.socket = folder / "socket"
        text = (_ROOT / "docker/scaling/nginx.conf").read_text()
        changes = {
            "listen 127.0.0.1:8080;": f"listen unix:{self.socket};\n"
            "    add_header X-Replica $upstream_addr always;",
            "127.0.0.1:8081": f"127.0.0.1:{ports[0]}",
            "127.0.0.1:8082": f"127.0.0.1:{ports[1]}",
        }
        for shipped, here in changes.items():
            if shipped not in text:
                raise RuntimeError(f"nginx.conf no longer says {shipped}")
            text = text.replace(shipped, here)
        places = "".join(
            f"{kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = text.replace("http {", f"http {{ access_log off; {places}")
        (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/pid;\n{text}")

    def __enter__(self) -> Self:
        # Started by root, its workers are another user, who has to reach the folder.
        self._folder.chmod(0o777)
        self._log = (self._folder / "log").open("w+")
        self._process = subprocess.Popen(
            [
                self._program,
                *("-p", str(self._folder), "-c", str(self._folder / "nginx.conf")),
                *("-e", "stderr"),
            ],
            stderr=self._log,
        )
        deadline = time.monotonic() + 30
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.terminate()
                raise RuntimeError("nginx did not start: " + (self._folder / "log").read_text())
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Status, body, and the address of the replica that answered."""
        connection = UnixConnection(self.socket)
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Host": _OUTSIDE, "Content-Type": "application/json", **(headers or {})},
            )
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.getheader("X-Replica", "")
        finally:
            connection.close()


class NginxTest(unittest.TestCase):
    nginx: Nginx
    replicas: list[LocalServer]

    def complete(self, body: dict[str, Any], **headers: str) -> tuple[int, str, str]:
        return self.nginx.ask(
            "POST",
            "/v1/completions",
            {"max_tokens": 1, **body},
            {name.replace("_", "-"): value for name, value in headers.items()},
        )

    def replica(self, body: dict[str, Any], path: str = "/v1/completions", **headers: str) -> str:
        status, text, replica = self.nginx.ask("POST", path, {"max_tokens": 1, **body}, headers)
        self.assertEqual(status, 200, text)
        return replica

    def chat(self, content: Any, **more: Any) -> str:
        messages = [{"role": "user", "content": content}, *more.pop("then", [])]
        return self.replica({"messages": messages, **more}, "/v1/chat/completions")

    def test_the_page_may_ask_for_an_answer(self) -> None:
        status, page, _ = self.nginx.ask("GET", "/")
        self.assertEqual(status, 200)
        self.assertIn("<title>SPEL", page)
        status, text, _ = self.complete({"prompt": "Once"}, Origin=f"http://{_OUTSIDE}")
        self.assertEqual(status, 200, text)
        status, text, _ = self.nginx.ask(
            "POST",
            "/v1/notebanks/page/write",
            {"text": _TEXT},
            {"Origin": f"http://{_OUTSIDE}"},
        )
        self.assertEqual(status, 201, text)

    def test_pages_of_other_origins_and_names_nobody_gave_it_stay_out(self) -> None:
        for headers in ({"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}):
            status, text, _ = self.complete({"prompt": "Once"}, **headers)
            self.assertEqual(status, 403, text)

    def test_a_stream_comes_through_whole(self) -> None:
        status, text, _ = self.complete({"prompt": "Once", "max_tokens": 8, "stream": True})
        self.assertEqual(status, 200, text)
        self.assertTrue(text.endswith("data: [DONE]\n\n"), text)

    def test_what_begins_alike_goes_to_one_replica_in_every_form(self) -> None:
        ids = [ord(letter) for letter in 2 * _TEXT]
        more = '[1] said "yes"'
        for name, begin, extension in (
            ("text", {"prompt": _TEXT}, {"prompt": _TEXT + more}),
            ("a list of texts", {"prompt": [_TEXT]}, {"prompt": [_TEXT + more]}),
            ("ids", {"prompt": ids}, {"prompt": [*ids, 33, 34]}),
            ("a list of ids", {"prompt": [ids]}, {"prompt": [[*ids, 33, 34]]}),
        ):
            for number in range(8):
                with self.subTest(name, number=number):
                    # Another beginning each time, or one replica could be the answer to all.
                    first, second = json.dumps(begin), json.dumps(extension)
                    old, new = ("[" + str(ids[0]), f"[{65 + number}")
                    if "ids" not in name:
                        old, new = '"It', f'"{number} It'
                    bodies = [json.loads(text.replace(old, new)) for text in (first, second)]
                    self.assertEqual(*(self.replica(body) for body in bodies))

    def test_a_conversation_stays_where_it_began_in_every_form(self) -> None:
        later = [
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "And then?"},
        ]
        for number in range(8):
            text = f"{number} {_TEXT}"
            with self.subTest(number=number):
                first = self.chat(text)
                self.assertEqual(self.chat(text, then=later), first)
                parts = [{"type": "text", "text": text}]
                self.assertEqual(self.chat(parts), first)
                self.assertEqual(self.chat(parts, then=later), first)

    def test_different_beginnings_use_both_replicas(self) -> None:
        forms = {
            "text": lambda number: self.replica({"prompt": f"{number} {_TEXT}"}),
            "ids": lambda number: self.replica({"prompt": [40 + number, *([65] * 60)]}),
            "message": lambda number: self.chat(f"{number} {_TEXT}"),
            "parts": lambda number: self.chat([{"text": f"{number} {_TEXT}", "type": "text"}]),
            "bank": lambda number: self.nginx.ask("GET", f"/v1/notebanks/bank{number}/notes/1")[2],
        }
        for name, ask in forms.items():
            with self.subTest(name):
                self.assertEqual(len({ask(number) for number in range(24)}), 2)

    def test_a_prompt_is_read_after_the_notes_of_its_bank_where_they_are(self) -> None:
        for number in range(8):
            bank = f"bank{number}"
            status, text, replica = self.nginx.ask(
                "POST", f"/v1/notebanks/{bank}/write", {"text": "KEY_15=1907; " + _TEXT}
            )
            self.assertEqual(status, 201, text)
            asked = self.replica({"prompt": "?KEY_15=", "notebank": {"bank": bank, "top": 1}})
            self.assertEqual(asked, replica)

    def test_the_clients_own_session_decides_where_it_says_one(self) -> None:
        replicas = {
            self.replica({"prompt": f"{number} {_TEXT}"}, **{"X-Spel-Affinity": "session-7"})
            for number in range(16)
        }
        self.assertEqual(len(replicas), 1)

    def test_a_text_to_remember_may_be_longer_than_a_prompt(self) -> None:
        # Refused by the server for what it says, not by nginx for its length.
        status, text, _ = self.nginx.ask(
            "POST", "/v1/notebanks/long/write", {"text": "\u00e9" * 1_000_000}
        )
        self.assertEqual(status, 400, text)
        self.assertIn("error", json.loads(text))

    def test_metrics_are_nobodys_but_prometheus(self) -> None:
        self.assertEqual(self.nginx.ask("GET", "/metrics")[0], 404)


class ReplicaGoneTest(unittest.TestCase):
    def test_the_other_one_answers(self) -> None:
        nginx, replicas = NginxTest.nginx, NginxTest.replicas
        replicas[0].stop()
        for number in range(8):
            status, text, replica = nginx.ask(
                "POST", "/v1/completions", {"prompt": f"{number} {_TEXT}", "max_tokens": 1}
            )
            self.assertEqual(status, 200, text)
            self.assertTrue(replica.endswith(f":{replicas[1].port}"), replica)


def main() -> int:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        print("skipped: no nginx here (Debian: apt-get install nginx-light)")
        return 77
    binary, model, folder = (Path(argument) for argument in sys.argv[1:4])
    with (
        LocalServer(binary, model, folder / "replica1.log", _SMALL) as first,
        LocalServer(binary, model, folder / "replica2.log", _SMALL) as second,
        # A socket's path may not be long.
        tempfile.TemporaryDirectory(prefix="spel-nginx-") as place,
        Nginx(program, [first.port, second.port], Path(place)) as nginx,
    ):
        NginxTest.nginx, NginxTest.replicas = nginx, [first, second]
        loader = unittest.defaultTestLoader
        # The last one stops a replica.
        suite = unittest.TestSuite(
            loader.loadTestsFromTestCase(case) for case in (NginxTest, ReplicaGoneTest)
        )
        done = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
