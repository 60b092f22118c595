"""Runs clang-tidy-19 over the sources of a build, several at a time; exit status 1 if it complains.

tests/lint/clang_tidy.py --build build/release [--jobs N] [FILE…]

A file that was clean is not looked at again until what it says, with all its headers, or the checks
change: BUILD/lint/ keeps a mark for it, named after the hash of the preprocessed text.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLANG_TIDY = "clang-tidy-19"
# They need clang's own fuzzing library.
NOT_BUILT = "tests/fuzz/"


@dataclass(frozen=True)
class Source:
    """A file and how it is compiled."""

    name: str
    folder: str
    command: tuple[str, ...]


@dataclass
class Result:
    name: str
    complaints: str
    seconds: float
    known: bool


def sources_of(build: Path, wanted: set[str]) -> list[Source]:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--", "*.cpp"], cwd=ROOT, capture_output=True, check=True
    )
    names = set(tracked.stdout.decode().split("\0")) - {""}
    if unknown := wanted - names:
        raise RuntimeError(f"no source of this repository: {', '.join(sorted(unknown))}")
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["directory"], entry["file"]).resolve()
        name = str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else ""
        if name in (wanted or names) and not name.startswith(NOT_BUILT):
            found[name] = Source(name, entry["directory"], tuple(shlex.split(entry["command"])))
    return [found[name] for name in sorted(found)]


def preprocessed(source: Source) -> bytes:
    """With its comments: they hold NOLINT."""
    command = list(source.command)
    if Path(command[0]).name == "ccache":
        command.pop(0)
    at = command.index("-o")
    del command[at : at + 2]
    command[command.index("-c")] = "-E"
    done = subprocess.run([*command, "-C"], cwd=source.folder, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{source.name} does not compile:\n{done.stderr.decode()}")
    return done.stdout


class Linter:
    def __init__(self, build: Path) -> None:
        self._build = build
        self._marks = build / "lint"
        self._marks.mkdir(exist_ok=True)
        version = subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
        self._checks = version + (ROOT / ".clang-tidy").read_bytes()

    def check(self, source: Source) -> Result:
        began = time.monotonic()
        text = self._checks + "\0".join(source.command).encode() + preprocessed(source)
        mark = self._marks / hashlib.sha256(text).hexdigest()
        if mark.exists():
            mark.touch()
            return Result(source.name, "", 0.0, True)
        command = [CLANG_TIDY, "--quiet", "-p", str(self._build)]
        command += ["--extra-arg=-Wno-unknown-warning-option", str(ROOT / source.name)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        complaints = ""
        if done.returncode != 0:
            complaints = done.stdout.strip() or done.stderr.strip() or f"status {done.returncode}"
        else:
            mark.touch()
        return Result(source.name, complaints, time.monotonic() - began, False)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("files", nargs="*", metavar="FILE", help="of the repository; all if none")
    options = parser.parse_args()
    build = options.build.resolve()
    sources = sources_of(build, set(options.files))
    linter = Linter(build)
    bad, known, done = [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(linter.check, source) for source in sources]
        for finished in concurrent.futures.as_completed(runs):
            result = finished.result()
            done += 1
            known += result.known
            if not result.known:
                print(f"[{done}/{len(sources)}] {result.name} ({result.seconds:.0f} s)", flush=True)
            if result.complaints:
                bad.append(result.name)
                print(result.complaints, flush=True)
    print(
        f"{len(sources)} files, {known} unchanged since they were clean, {len(bad)} with complaints"
    )
    for name in bad:
        print(f"  {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        print(f"clang_tidy.py: {error}", file=sys.stderr)
        sys.exit(2)
