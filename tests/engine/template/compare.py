"""Random templates, rendered by this program and by Python's jinja2 as transformers sets it up: the
texts have to be equal, and where one fails the other has to fail too.

    python compare.py RENDER_LINES [--templates N] [--seed S]

Needs jinja2.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLES: dict[str, Any] = {
    "s": "Hello <b>World</b> don't",
    "e": "",
    "u": "Ünï \t cödé\n",
    "i": 7,
    "z": 0,
    "f": 2.5,
    "t": True,
    "n": None,
    "l": [3, 1, 2],
    "w": ["b", "A", "c"],
    "d": {"k": "v", "n": 1, "l": [1, 2]},
    "m": [{"role": "user", "content": "hi"}, {"role": "tool", "content": None}],
}
NAMES = (*VARIABLES, "missing")
FILTERS = (
    "trim", "upper", "lower", "title", "capitalize", "length", "first", "last", "list", "string",
    "tojson", "int", "float", "abs", "reverse", "sort", "unique", "join", "sum", "min", "max",
    "items", "default('q')", "default('q', true)", "join(', ')", "replace('l', 'L')", "round",
    "round(1)", "map('upper')|list", "map(attribute='role')|list", "select|list", "reject|list",
    "selectattr('role', 'equalto', 'user')|list", "rejectattr('content')|list", "indent(2)", "safe",
    "sort(reverse=true)", "dictsort", "count", "tojson(indent=2)", "trim('<>H')", "int(5)",
)  # fmt: skip
TESTS = (
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping",
    "iterable", "sequence", "true", "false", "odd", "even", "lower", "upper", "divisibleby 3",
    "eq(7)", "in([7, 1])", "sameas none", "gt 3", "equalto 'x'", "callable",
)  # fmt: skip
METHODS = (
    "strip()", "lstrip('H')", "rstrip()", "split()", "split('l')", "split(' ', 1)",
    "rsplit(' ', 1)", "startswith('H')", "endswith(('x', \"'t\"))", "upper()", "title()",
    "replace('o', '0')", "find('W')", "count('l')", "splitlines()", "get('k')", "get('zz', 3)",
    "items()|list", "keys()|list", "values()|list", "index(1)", "join(['a', 'b'])",
    "removeprefix('Hello')", "isdigit()", "capitalize()", "islower()",
)  # fmt: skip
CONSTANTS = (
    "1", "0", "-3", "2.5", "1e3", "'a'", '"b\\n"', "''", "true", "false", "none", "[1, 'x']", "[]",
    "{'a': 1}", "('t', 2)", "'é'", "10", "1.0", "0.1",
)  # fmt: skip
SIGNS = ("+", "-", "*", "//", "%", "/", "~", "and", "or", "==", "!=", "<", ">", "<=", ">=", "in",
         "not in", "**")  # fmt: skip


class Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.loops = 0

    def expression(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 3 or rng.random() < 0.3:
            return rng.choice(CONSTANTS) if rng.random() < 0.4 else rng.choice(NAMES)
        inner = lambda: self.expression(depth + 1)  # noqa: E731
        kind = rng.randrange(11)
        if kind == 0:
            return f"{inner()} {rng.choice(SIGNS)} {inner()}"
        if kind == 1:
            return f"({inner()})"
        if kind == 2:
            return f"{inner()}|{rng.choice(FILTERS)}"
        if kind == 3:
            return f"{inner()} is {rng.choice(('', 'not '))}{rng.choice(TESTS)}"
        if kind == 4:
            return f"{rng.choice(NAMES)}.{rng.choice(METHODS)}"
        if kind == 5:
            return f"{inner()} if {inner()} else {inner()}"
        if kind == 6:
            return f"{rng.choice(NAMES)}[{rng.choice(('0', '-1', '1:', ':2', '::-1', '1:3', '5'))}]"
        if kind == 7:
            return f"{rng.choice(NAMES)}.{rng.choice(('k', 'role', 'nope'))}"
        if kind == 8:
            return f"not {inner()}"
        if kind == 9:
            return f"[{inner()}, {inner()}]"
        return f"{inner()} {rng.choice(SIGNS)} {inner()} {rng.choice(SIGNS)} {inner()}"

    def tag(self, inside: str) -> str:
        rng = self.rng
        left, right = rng.choice(("{%", "{%", "{%-")), rng.choice(("%}", "%}", "-%}"))
        return f"{left} {inside} {right}"

    def body(self, depth: int = 0) -> str:
        return "".join(self.statement(depth) for _ in range(self.rng.randint(1, 3)))

    def statement(self, depth: int) -> str:
        rng = self.rng
        kind = rng.randrange(9 if depth < 3 else 3)
        if kind == 0:
            return rng.choice(("text ", "\n", "  ", "a\n  ", "<|x|>"))
        if kind in (1, 2):
            return f"{rng.choice(('{{', '{{-'))} {self.expression()} {rng.choice(('}}', '-}}'))}"
        if kind == 3:
            other = self.tag("else") + self.body(depth + 1) if rng.random() < 0.5 else ""
            return f"{self.tag('if ' + self.expression())}{self.body(depth + 1)}{other}" + self.tag(
                "endif"
            )
        if kind == 4:
            condition = f" if x {rng.choice(('is odd', 'is string', '!= 1'))}"
            head = f"for x in {self.expression()}{condition if rng.random() < 0.3 else ''}"
            seen = rng.choice(
                ("{{ loop.index }}", "{{ loop.last }}", "{{ loop.previtem }}", "{{ x }}")
            )
            return f"{self.tag(head)}{seen}{self.body(depth + 1)}{self.tag('endfor')}"
        if kind == 5:
            return self.tag(f"set v = {self.expression()}") + "{{ v }}"
        if kind == 6:
            return (
                self.tag("set ns = namespace(a=1)")
                + self.tag("for q in range(3)")
                + self.tag(f"set ns.a = {self.expression()}")
                + self.tag("endfor")
                + "{{ ns.a }}"
            )
        if kind == 7:
            return self.tag("set c") + self.body(depth + 1) + self.tag("endset") + "{{ c|length }}"
        return "{# note #}" + rng.choice(("\n", ""))


def their_environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    environment.filters["tojson"] = tojson
    return environment


def prints_as_here(text: str) -> bool:
    """Tuples print with brackets of their own there, generators and methods with addresses."""
    return not any(
        mark in text for mark in ("(", "<generator", "<reversed", "<built-in", "<bound", "dict_")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--templates", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    templates = [Writer(options.seed * 1_000_003 + i).body() for i in range(options.templates)]
    lines = "".join(json.dumps({"template": t, "variables": VARIABLES}) + "\n" for t in templates)
    run = subprocess.run([options.program], input=lines, capture_output=True, text=True, check=True)
    environment = their_environment()
    counts: Counter[str] = Counter()
    shown = 0
    for template, line in zip(templates, run.stdout.splitlines(), strict=True):
        found = json.loads(line)
        try:
            expected: dict[str, str] = {
                "text": environment.from_string(template).render(**copy.deepcopy(VARIABLES))
            }
        except jinja2.TemplateSyntaxError as error:
            expected = {"refused": str(error)}
        except Exception as error:
            expected = {"error": f"{type(error).__name__}: {error}"}
        if "refused" in expected and "refused" not in found:
            counts["taken here only"] += 1  # Where a word could be an argument, it is one there.
        elif "error" in expected and "refused" in found:
            counts["refused here before it fails"] += 1
        elif "text" in expected and not prints_as_here(expected["text"]):
            counts["prints otherwise"] += 1
        elif expected.keys() == found.keys() and expected.get("text") == found.get("text"):
            counts["equal"] += 1
            counts[f"of those, {next(iter(found))}"] += 1
        else:
            counts["different"] += 1
            if shown < 12:
                shown += 1
                print(f"{template!r}\n  expected {expected}\n  found    {found}")
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
