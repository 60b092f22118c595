"""A memory control group for a server of ours, where this user may make one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType

_ROOT = Path("/sys/fs/cgroup")


class Cage:
    """`with Cage(2 << 30) as cage:`; `cage.path` is None where control groups cannot be written."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._old = (_ROOT / "memory").is_dir()  # the first version: a tree for each resource
        self.path: Path | None = None

    def __enter__(self) -> Cage:
        path = (_ROOT / "memory" if self._old else _ROOT) / f"spel-abuse-{os.getpid()}"
        try:
            path.mkdir()
            name = "memory.limit_in_bytes" if self._old else "memory.max"
            (path / name).write_text(str(self._limit))
            self.path = path
        except OSError:
            with contextlib.suppress(OSError):
                path.rmdir()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.path is not None:
            self.path.rmdir()

    def enter(self) -> None:
        """Puts the calling process inside; between fork and exec."""
        if self.path is not None:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def kills(self) -> int:
        """Processes that were killed for memory."""
        if self.path is None:
            return 0
        text = (self.path / ("memory.oom_control" if self._old else "memory.events")).read_text()
        return sum(int(line.split()[1]) for line in text.splitlines() if "oom_kill " in line)

    def peak_bytes(self) -> int:
        """The most memory there was at once, the kernel's for its files included."""
        if self.path is None:
            return 0
        name = "memory.max_usage_in_bytes" if self._old else "memory.peak"
        try:
            return int((self.path / name).read_text())
        except OSError:
            return 0  # older kernels do not keep it
