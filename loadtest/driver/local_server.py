"""Starts a server of our own for the length of a run."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_READY_SECONDS = 180.0
_STOP_SECONDS = 30.0


class LocalServer:
    """`with LocalServer(binary, model, log, flags) as server:`; ready inside, ended after."""

    def __init__(
        self,
        binary: Path,
        model: Path,
        log: Path,
        flags: list[str],
        *,
        port: int = 0,
        descriptors: int | None = None,
        environment: dict[str, str] | None = None,
        inside: Callable[[], None] | None = None,
    ) -> None:
        """`port` 0 is any free one; `descriptors` limits how many files it may open;
        `environment` is added to ours; `inside` is called in the new process before the
        server's program is."""
        self._command = [str(binary), "serve", "--model", str(model), "--port", str(port), *flags]
        self._log = log
        self._descriptors = descriptors
        self._environment = os.environ | (environment or {})
        self._inside = inside
        self.url = ""
        self.port = 0
        self.process: subprocess.Popen[str]

    def start(self) -> None:
        """Until it listens; it may still be loading."""
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
            preexec_fn=self._prepare,
        )
        listening = threading.Event()
        threading.Thread(target=self._keep_log, args=(listening,), daemon=True).start()
        listening.wait(_READY_SECONDS)
        if not self.url:
            self.stop()
            raise RuntimeError(f"the server did not start to listen; see {self._log}")

    def stop(self) -> int:
        """Its exit status; -9 if it had to be killed."""
        self.process.terminate()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self.process.wait()

    def alive(self) -> bool:
        return self.process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _prepare(self) -> None:
        if self._inside is not None:
            self._inside()
        if self._descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._descriptors, self._descriptors))

    def _keep_log(self, listening: threading.Event) -> None:
        assert self.process.stdout is not None
        with self._log.open("w") as log:
            for line in self.process.stdout:
                log.write(line)
                if match := re.search(r"listening url=(http://\S+:(\d+))", line):
                    self.url, self.port = match[1], int(match[2])
                    listening.set()
        listening.set()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and self.alive():
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"the server did not get ready; see {self._log}")
