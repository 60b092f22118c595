"""Properties of the generated sequences: answers are right, lengths exact, classes in place."""

import random
import re

import pytest

from notebank_data import ANSWER, FACT, FILLER, NoteBankGenerator, NoteBankSpec

WORDS = ["alpha", "bravo", "stone", "river", "lamp", "of", "winter"]
PROSE = "It was a fine morning, and the river was quiet. " * 400
STATED = re.compile(r"(\?)?KEY_(\d{2,3})=(\d{4})")


def generator(seed: int = 1) -> NoteBankGenerator:
    return NoteBankGenerator(WORDS, [PROSE], seed)


@pytest.mark.parametrize("length", [129, 257, 513, 1025, 4097])
def test_every_answer_is_the_last_stated_value(length):
    source = generator(length)
    asked = 0
    for _ in range(40):
        text, classes = source.sequence(length, NoteBankSpec(keys=(1, 12)))
        assert len(text) == len(classes) == length
        last = {}
        for question, key, value in STATED.findall(text):
            if not question:
                last[key] = value
            elif key in last:
                assert last[key] == value
                asked += 1
    assert asked > 40


def test_classes_mark_values_and_answers():
    source = generator()
    for _ in range(40):
        text, classes = source.sequence(400, NoteBankSpec())
        for match in re.finditer(r"\?KEY_\d+=(\d{4}\.)", text):
            assert set(classes[match.start(1) : match.end(1)]) == {ANSWER}
            assert set(classes[match.start() : match.start(1)]) == {FILLER}
        for at, kind in enumerate(classes):
            if kind == FACT:
                assert text[at].isdigit()


def test_same_seed_same_text():
    spec = NoteBankSpec()
    assert [generator(5).sequence(300, spec) for _ in range(3)] == [
        generator(5).sequence(300, spec) for _ in range(3)
    ]
    tokens, classes = generator(6).batch(4, 300, spec)
    assert tokens.shape == classes.shape == (4, 300)
    assert tokens.max() < 128


@pytest.mark.parametrize("kind", ["scatter", "overwrite", "replay", "wrong_note"])
@pytest.mark.parametrize("width", [2, 3])
def test_probe_has_its_length_and_one_answer(kind, width):
    source = generator(7)
    for length in (252, 508, 1020):
        prompt, value = source.probe(length, 4, kind, width)
        assert len(prompt) == length
        key = re.search(r"\?KEY_(\d+)=$", prompt).group(1)
        assert len(key) == width
        stated = re.findall(rf"KEY_{key}=(\d{{4}})", prompt)
        assert stated and stated[-1] == value
        note = prompt[-60:]
        if kind == "replay":
            assert f"KEY_{key}={value}" in note
        if kind == "wrong_note":
            assert f"KEY_{key}={value}" not in prompt[-(48 + len(key) + 6) :]


def test_document_prompt_has_the_papers_form():
    prompt = generator().document_prompt()
    assert len(prompt) == 379
    assert [m.start() for m in re.finditer("KEY_15=1907; ", prompt)] == [30, 158, 286]
    assert prompt.endswith("?KEY_15=")


def test_keys_are_distinct_and_of_both_widths():
    source = generator(3)
    widths = set()
    for _ in range(60):
        keys = source.keys(16, three_digit_share=0.4, mixed_share=0.2)
        assert len(set(keys)) == 16
        widths.add(tuple(sorted({len(key) for key in keys})))
    assert widths == {(2,), (3,), (2, 3)}


def test_filler_ends_at_a_space_and_never_exceeds_its_length():
    source = generator(9)
    for share in (0.0, 1.0):
        filler = source.filler(share)
        for length in (1, 2, 17, 80):
            assert len(filler.take(length, exact=True)) == length
            text = filler.take(length)
            assert 0 < len(text) <= length and text.endswith(" ")


def test_generator_leaves_the_global_random_state_alone():
    random.seed(1)
    before = random.getstate()
    generator().sequence(300, NoteBankSpec())
    assert random.getstate() == before
