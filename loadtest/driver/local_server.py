"""Starts a server of our own for the length of a run."""

from __future__ import annotations

import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

_READY_SECONDS = 180.0
_STOP_SECONDS = 30.0


class LocalServer:
    """`with LocalServer(binary, model, log) as url:`; SIGTERM at the end, and its exit status."""

    def __init__(self, binary: Path, model: Path, log: Path, flags: list[str]) -> None:
        self._command = [
            str(binary),
            "serve",
            "--model",
            str(model),
            "--port",
            "0",
            *flags,
        ]
        self._log = log
        self.status: int | None = None

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._url: str | None = None
        self._listening = threading.Event()
        threading.Thread(target=self._keep_log, daemon=True).start()
        try:
            return self._wait_ready()
        except BaseException:
            self._stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def _keep_log(self) -> None:
        assert self._process.stdout is not None
        with self._log.open("w") as log:
            for line in self._process.stdout:
                log.write(line)
                if match := re.search(r"listening url=(\S+)", line):
                    self._url = match[1]
                    self._listening.set()
        self._listening.set()

    def _wait_ready(self) -> str:
        deadline = time.monotonic() + _READY_SECONDS
        self._listening.wait(_READY_SECONDS)
        while self._url and time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self._url}/health", timeout=5):
                    return self._url
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise RuntimeError(f"the server did not get ready; see {self._log}")

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self.status = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.status = self._process.wait()
