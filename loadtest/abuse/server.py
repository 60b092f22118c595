"""A server of our own, watched from outside."""

from __future__ import annotations

import http.client
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_READY_SECONDS = 180.0
_STOP_SECONDS = 30.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Context:
    """What every scenario is given."""

    binary: Path
    model: Path
    bare: Path | None  # the bare Beast program, to compare with
    out: Path
    quick: bool
    seconds: float | None  # how long, where a scenario can choose
    requests: int | None  # how many, where it can choose
    seed: int = 1

    def duration(self, full: float, quick: float) -> float:
        return self.seconds if self.seconds is not None else quick if self.quick else full

    def count(self, full: int, quick: int) -> int:
        return self.requests if self.requests is not None else quick if self.quick else full


class Server:
    """`with Server(context, "--queue", "8") as server:`; ready inside, ended after."""

    def __init__(
        self, context: Context, *flags: str, descriptors: int | None = None, port: int = 0
    ) -> None:
        self._command = [str(context.binary), "serve", "--model", str(context.model)]
        self._command += ["--port", str(port), *flags]
        self._descriptors = descriptors
        self._log = context.out / "server.log"
        self.port = 0
        self.process: subprocess.Popen[str]

    def _limit_descriptors(self) -> None:
        if self._descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._descriptors, self._descriptors))

    def start(self) -> None:
        """Until it listens; it may still be loading."""
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=self._limit_descriptors,
        )
        listening = threading.Event()
        threading.Thread(target=self._keep_log, args=(listening,), daemon=True).start()
        listening.wait(_READY_SECONDS)
        if self.port == 0:
            raise RuntimeError(f"the server did not start to listen; see {self._log}")

    def _keep_log(self, listening: threading.Event) -> None:
        assert self.process.stdout is not None
        with self._log.open("w") as log:
            for line in self.process.stdout:
                log.write(line)
                if match := re.search(r"listening url=http://[^\s]+:(\d+)", line):
                    self.port = int(match[1])
                    listening.set()
        listening.set()

    def __enter__(self) -> Server:
        self.start()
        deadline = time.monotonic() + _READY_SECONDS
        while self.get("/health")[0] != 200:
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.stop()
                raise RuntimeError(f"the server did not get ready; see {self._log}")
            time.sleep(0.1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """Its exit status; -9 if it had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def alive(self) -> bool:
        return self.process.poll() is None

    def rss_bytes(self) -> int:
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * _PAGE_BYTES

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def get(self, path: str, timeout: float = 10.0) -> tuple[int, str]:
        """(0, "") where there was no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name with labels."""
        status, page = self.get("/metrics")
        if status != 200:
            raise RuntimeError(f"/metrics answered {status}, not 200")
        lines = (line for line in page.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def generations(self) -> int:
        """Running and waiting."""
        samples = self.metrics()
        return int(samples["spel_num_requests_running"] + samples["spel_num_requests_waiting"])

    def wait_idle(self, seconds: float) -> float:
        """Seconds until no generation was left; infinite if one stayed."""
        began = time.monotonic()
        while self.generations() > 0:
            if time.monotonic() - began > seconds:
                return float("inf")
            time.sleep(0.002)
        return time.monotonic() - began


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
