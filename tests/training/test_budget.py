"""Minutes become tokens: few steps are spent on measuring, at least one is planned."""

import pytest

import run as runs


class Clock:
    """Moves only when a step is taken."""

    def __init__(self, step_seconds):
        self.now, self.step_seconds, self.steps = 0.0, step_seconds, 0

    def monotonic(self):
        return self.now

    def step(self, number):
        assert number == self.steps
        self.steps += 1
        self.now += self.step_seconds


@pytest.fixture
def run(monkeypatch, tmp_path):
    def run(minutes, step_seconds):
        clock = Clock(step_seconds)
        monkeypatch.setattr(runs, "time", clock)
        tokens = runs.tokens_for(minutes, tmp_path / "plan.json", 1000, clock.step)
        return tokens, clock.steps

    return run


def test_measuring_takes_a_small_share_of_the_time(run):
    tokens, steps = run(10, 30)
    assert steps == 4  # 90 s are 15 % of it, and the step that passes them is the last
    assert tokens == int(0.8 * 1000 / 30 * (600 - 120))


def test_a_step_longer_than_all_the_time_is_taken_once_and_one_is_planned(run):
    assert run(1, 280) == (1000, 1)


def test_quick_steps_are_not_measured_for_ever(run):
    assert run(1000, 1)[1] == 9


def test_the_plan_of_a_run_that_was_stopped_holds(run):
    first, _ = run(10, 30)
    assert run(99, 1) == (first, 0)
