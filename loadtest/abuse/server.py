"""A server of our own, watched from outside."""

from __future__ import annotations

import http.client
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from driver.local_server import LocalServer

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Context:
    """What every scenario is given."""

    binary: Path
    model: Path
    bare: Path | None  # the bare Beast program, to compare with
    failing_malloc: Path | None  # the library that makes allocations fail
    out: Path
    quick: bool
    seconds: float | None  # how long, where a scenario can choose
    requests: int | None  # how many, where it can choose
    seed: int = 1

    def duration(self, full: float, quick: float) -> float:
        return self.seconds if self.seconds is not None else quick if self.quick else full

    def count(self, full: int, quick: int) -> int:
        return self.requests if self.requests is not None else quick if self.quick else full


class Server(LocalServer):
    """`with Server(context, "--queue", "8") as server:`."""

    def __init__(
        self,
        context: Context,
        *flags: str,
        descriptors: int | None = None,
        port: int = 0,
        environment: dict[str, str] | None = None,
        inside: Callable[[], None] | None = None,
    ) -> None:
        self.log = context.out / "server.log"
        super().__init__(
            context.binary,
            context.model,
            self.log,
            list(flags),
            port=port,
            descriptors=descriptors,
            environment=environment,
            inside=inside,
        )

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
