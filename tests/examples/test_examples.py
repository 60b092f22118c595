#!/usr/bin/env python3
"""test_examples.py SPEL-BINARY MODEL FOLDER

Runs the curl commands of the documentation in order, against a new server for each page: each
has to be answered well and as openapi.json says. Exit status 77 (skipped) where there is no curl.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "loadtest"))

from driver.local_server import LocalServer

from schema import response_schema, violations

_DOCUMENTS = ("README.md", "docker/README.md", "memory/README.md")
_HOST = re.compile(r"(?:http://)?(?:127\.0\.0\.1|localhost):80[89]0")
_STATUS = "status of the example: "


@dataclass(frozen=True, slots=True)
class Example:
    place: str
    arguments: list[str]
    refused: bool = False  # the document shows an error as the answer


def examples(document: str, text: str) -> Iterator[Example]:
    """Commands that begin a line with curl, or "$ curl", and go on until the quotes close."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        begin = number
        number += 1
        if not re.match(r"\s*(\$ )?curl .*\d", lines[begin]):
            continue
        command = lines[begin].strip().removeprefix("$ ")
        while (arguments := _split(command)) is None:
            command = command.removesuffix("\\") + "\n" + lines[number]
            number += 1
        refused = number < len(lines) and lines[number].strip().startswith('{"error"')
        yield Example(f"{document}:{begin + 1}", arguments, refused)


def _split(command: str) -> list[str] | None:
    """None: it goes on on the next line."""
    if command.endswith("\\"):
        return None
    try:
        return shlex.split(command)
    except ValueError:
        return None


def check_stream(body: str) -> list[str]:
    events = [event.removeprefix("data: ") for event in body.strip().split("\n\n")]
    ends = events[-1] == "[DONE]" or "error" not in json.loads(events[-1])
    payloads = [json.loads(event) for event in events if event != "[DONE]"]
    wrong = [] if ends else [f"the stream ended with {events[-1]}"]
    return wrong + [f"an error in the stream: {one}" for one in payloads if "error" in one]


def check(example: Example, url: str, description: dict[str, Any]) -> list[str]:
    arguments = [_HOST.sub(url, argument) for argument in example.arguments]
    target = next((argument for argument in arguments if argument.startswith(url)), None)
    if target is None:
        return [f"no address of the server in {shlex.join(example.arguments)}"]
    command = [
        "curl",
        "-sS",
        "--max-time",
        "60",
        "-w",
        f"\n{_STATUS}%{{http_code}}",
        *arguments[1:],
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    body, _, status = done.stdout.rpartition("\n" + _STATUS)
    if done.returncode != 0 or not status.startswith("4" if example.refused else "2"):
        return [f"status {status or 'none'}: {body[:300]}{done.stderr}"]
    if body.startswith("data: "):
        return check_stream(body)
    method = "get"
    if "-X" in arguments:
        method = arguments[arguments.index("-X") + 1].lower()
    elif "-d" in arguments:
        method = "post"
    schema = response_schema(description, method, urlsplit(target).path, int(status))
    return [] if schema is None else violations(description, schema, json.loads(body))


def main() -> int:
    if shutil.which("curl") is None:
        print("skipped: no curl here (Debian: apt-get install curl)")
        return 77
    binary, model, folder = (Path(argument) for argument in sys.argv[1:4])
    commands = failed = 0
    for name in _DOCUMENTS:
        found = list(examples(name, (_ROOT / name).read_text()))
        commands += len(found)
        if not found:  # Every page has some: the search has gone blind.
            print(f"FAILED no curl command found in {name}")
            failed += 1
        with LocalServer(binary, model, folder / "examples.log", []) as server:
            with urllib.request.urlopen(f"{server.url}/openapi.json") as response:
                description = json.load(response)
            for example in found:
                wrong = check(example, server.url, description)
                failed += bool(wrong)
                print(f"{'FAILED' if wrong else 'ok':6} {example.place} {example.arguments[1:3]}")
                for line in wrong:
                    print(f"       {line}")
    print(f"{commands} commands, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
