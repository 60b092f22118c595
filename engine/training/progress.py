"""What a long run says while it works: how far it is, how fast, how long yet, how much memory."""

from __future__ import annotations

import resource
import sys
import threading
import time

_EVERY_SECONDS = 5.0
_SILENCE_SECONDS = 10.0
_last_line = time.monotonic()


def peak_memory_gb() -> float:
    """The most this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def free_memory_gb() -> float:
    """What can be had without swapping; infinite where the kernel does not say."""
    try:
        with open("/proc/meminfo") as file:
            sizes = dict(line.split(":") for line in file)
        return int(sizes["MemAvailable"].split()[0]) / 1e6
    except (OSError, KeyError):
        return float("inf")


def note(text: str) -> None:
    """A line for whoever waits; results go to standard output, this does not."""
    global _last_line
    _last_line = time.monotonic()
    print(text, file=sys.stderr, flush=True)


def break_silence() -> None:
    """From now on a line is written whenever nothing else was for a while: steps can be long."""
    began = time.monotonic()

    def watch() -> None:
        while True:
            time.sleep(max(0.1, _last_line + _SILENCE_SECONDS - time.monotonic()))
            now = time.monotonic()
            if now - _last_line >= _SILENCE_SECONDS:
                note(f"  at work for {duration(now - began)}, {peak_memory_gb():.1f} GB of memory")

    threading.Thread(target=watch, daemon=True).start()


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


class Progress:
    """``at(done)`` after every step; a line at the first one and then every few seconds."""

    def __init__(self, what: str, done: int, total: int) -> None:
        self.what, self.start, self.total = what, done, total
        self.began = time.monotonic()
        self.told = float("-inf")

    def at(self, done: int) -> None:
        now = time.monotonic()
        if now - self.told < _EVERY_SECONDS and done < self.total:
            return
        self.told = now
        rate = (done - self.start) / max(1e-9, now - self.began)
        left = duration(max(0, self.total - done) / max(1e-9, rate))
        note(
            f"{self.what}: {done:,} of {self.total:,} tokens, {rate:,.0f} a second, "
            f"{left} to go, {peak_memory_gb():.1f} GB of memory"
        )
