"""Writes the model card and refreshes SHA256SUMS: figures, data, licences, what it is not for.

    python3 model_card.py --model DIR --run RUN --figures FIGURES.json --config CONFIG

Every number comes from a file that a script wrote; `--history` names tokens of earlier legs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from export import write_sums

_WORDNET = """\
WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.
THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS" AND PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR
WARRANTIES, EXPRESS OR IMPLIED. BY WAY OF EXAMPLE, BUT NOT LIMITATION, PRINCETON UNIVERSITY MAKES NO
REPRESENTATIONS OR WARRANTIES OF MERCHANTABILITY OR FITNESS FOR ANY PARTICULAR PURPOSE OR THAT THE
USE OF THE LICENSED SOFTWARE, DATABASE OR DOCUMENTATION WILL NOT INFRINGE ANY THIRD PARTY PATENTS,
COPYRIGHTS, TRADEMARKS OR OTHER RIGHTS.
The name of Princeton University or Princeton may not be used in advertising or publicity pertaining
to distribution of the software and/or database. Title to copyright in this software, database and
any associated documentation shall at all times remain with Princeton University and LICENSEE agrees
to preserve same."""


def _last(path: Path) -> dict:
    lines = path.read_text().splitlines() if path.exists() else []
    return json.loads(lines[-1]) if lines else {}


def data_table(manifest: dict, mix: dict[str, float]) -> str:
    rows = ["| text | characters | share of the prose | licence |", "|---|---|---|---|"]
    total = sum(mix.values())
    for source in manifest["sources"]:
        share = mix.get(source["name"], 0.0) / total
        rows.append(
            f"| {source['title']} | {source['characters']:,} | {share:.2f} | {source['licence']} |"
        )
    return "\n".join(rows)


def figure_tables(figures: dict) -> str:
    prose = figures["held_out_nats_per_char"]
    parts = ["Held-out prose, nats per character (teacher-forced, last 3 % of every source):\n"]
    parts.append(", ".join(f"{name} {value:.3f}" for name, value in prose.items()) + ".")
    parts.append(
        "\n\n| recall: the exact four-digit value | share right | sequences |\n|---|---|---|\n"
    )
    for name, entry in figures["recall"].items():
        parts.append(f"| {name} | {entry['exact']:.3f} | {entry['sequences']} |\n")
    acceptance = figures.get("acceptance", {})
    if acceptance:
        parts.append(
            "\n| the draft, 64 generated characters | accepted / proposed | accepted a round "
            "| by position |\n|---|---|---|---|\n"
        )
    for name, entry in acceptance.items():
        places = " ".join(f"{share:.2f}" for share in entry["by_position"])
        parts.append(
            f"| {name} | {entry['alpha']:.3f} | {entry['accepted_per_round']:.2f} | {places} |\n"
        )
    return "".join(parts)


def card(args: argparse.Namespace) -> str:
    config = json.loads(args.config.read_text())
    figures = json.loads(args.figures.read_text())
    manifest = json.loads((Path(__file__).parent / "data_manifest.json").read_text())
    target, draft = _last(args.run / "log.jsonl"), _last(args.run / "draft-log.jsonl")
    samples = "\n\n".join(
        "> " + text.replace("\n", " / ") for text in figures["samples_temperature_0.8"]
    )
    seen = args.history_tokens + target.get("tokens", 0)
    drafted = args.history_draft_tokens + draft.get("tokens", 0)
    return f"""\
# {config["name"]}

A hybrid language model of 21,352,044 parameters (Gated DeltaNet, attention every fourth layer; one
token per ASCII code, context 4,096), with a low-bit draft of 7,084,452 (int8 projections, ternary
MLP, 3,602,432 bytes packed). All weights are bf16-exact; every figure below is of the shipped values.

It exists to show and test a server: recurrent rollback, speculation, recall of planted facts. It
writes English words and clauses, not sense.

**Not for**: answering questions about the world, advice, translation, code, anything where a wrong
statement matters. It has read old novels, two Bibles, dictionaries and a handbook of countries, and
repeats their views and their errors. Text is ASCII only.

## Use

Free text continues in the style of its sources. A fact `KEY_15=1907; ` anywhere in the context is
recalled by `?KEY_15=`, which the model completes with `1907.`; keys have two or three digits. Greedy
prose falls into loops, as models this small do: sample at 0.7-0.9.

## Training

{seen / 1e6:.2f} million characters seen by the target, {drafted / 1e6:.2f} million by the draft.
{args.history}

    engine/training/train.sh            # data, target, text by the target, draft, export, figures
    engine/training/eval.sh             # the figures of this directory

Hyper-parameters: `engine/training/configs/{args.config.name}`. Curves of the last leg: `curves.png`.

{data_table(manifest, config["data"]["mix"])}

and generated NoteBank sequences (`engine/training/notebank_data.py`).

## Figures

{figure_tables(figures)}
Prose and recall by the bf16 training pass, the draft by the f32 reference pass, one seed.
{args.notes}

## Samples at temperature 0.8

{samples}

## Licences and notices

The texts are in the public domain, except the glosses of WordNet, whose licence permits use and
distribution for any purpose with this notice:

> {_WORDNET.replace(chr(10), chr(10) + "> ")}

The modern English Bible in the mix is the public-domain World English Bible; what the model writes
is not that text and must not be called so. The weights come under the licence of SPEL's
repository: Apache-2.0, its file LICENSE.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--config", type=Path, default=here / "configs" / "spel-21m.json")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--history", default="Trained from random weights in one run.")
    parser.add_argument("--history-tokens", type=int, default=0)
    parser.add_argument("--history-draft-tokens", type=int, default=0)
    parser.add_argument("--notes", default="")
    args = parser.parse_args()
    (args.model / "README.md").write_text(card(args))
    write_sums(args.model)


if __name__ == "__main__":
    main()
