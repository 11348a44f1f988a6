"""The alarm on rising errors, and the trial of a fresh learner."""

import numpy as np
import pytest

from maxcosine.drift import Drift, DriftAlarm, Trial
from maxcosine.onepass import OnePassState


class NaiveAlarm:
    """The definition, row by row: at the end of each block of 32, 64, ... rows, compare it with all rows before."""

    def __init__(self):
        self.wrong = []

    def learn(self, wrong):
        self.wrong.append(wrong)
        t, size = len(self.wrong), 32
        alarm = False
        while 2 * size <= t:
            if t % size == 0:
                p, q = np.mean(self.wrong[-size:]), np.mean([True, *self.wrong[:-size]])
                kl = (p * np.log(p / q) if p else 0.0) + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)
                alarm |= p > q and size * kl > 3 * np.log(t)
            size *= 2
        return alarm


def alarms(wrong, chunks):
    """After which rows the alarm goes off, if errors come in chunks of these sizes; it starts anew each time."""
    alarm, found, start = DriftAlarm(), [], 0
    for chunk in chunks:
        part, done = wrong[start : start + chunk], 0
        while (taken := alarm.watch(part[done:])) is not None:
            done += taken
            found.append(start + done)
            alarm = DriftAlarm()
        start += chunk
    return found


@pytest.mark.parametrize("seed", range(5))
def test_alarm_is_the_definition_for_any_chunks(seed):
    random = np.random.default_rng(seed)
    rates = np.repeat([*random.uniform(0.0, 0.2, 3), 0.7, *random.uniform(0.0, 1.0, 2)], 300)
    wrong = random.random(len(rates)) < rates
    naive, expected = NaiveAlarm(), []
    for row, one in enumerate(wrong, 1):
        if naive.learn(bool(one)):
            expected.append(row)
            naive = NaiveAlarm()
    assert expected  # a rate rises somewhere
    cuts = np.sort(random.choice(np.arange(1, len(wrong)), 40, replace=False))
    for chunks in ([len(wrong)], [1] * len(wrong), np.diff([0, *cuts, len(wrong)]).tolist()):
        assert alarms(wrong, chunks) == expected


def test_few_false_alarms_on_constant_rates():
    random = np.random.default_rng(1)
    false = [bool(alarms(random.random(5000) < rate, [5000])) for rate in np.tile([0.01, 0.05, 0.2, 0.4], 75)]
    assert sum(false) <= 9  # 3 % of 300 streams


def outcome_of(old_rate, fresh_rate, limit=10**6, n=20_000, seed=0):
    random = np.random.default_rng(seed)
    trial = Trial(OnePassState.create(0), None, limit)
    chosen, outcome = trial.judge(random.random(n) < old_rate, random.random(n) < fresh_rate)
    return chosen, outcome, trial


def test_better_learner_wins_the_trial_and_predicts_before_it_has_won():
    chosen, outcome, trial = outcome_of(0.9, 0.1)
    assert outcome == "restarted"
    assert trial.age == len(chosen) == 64
    assert chosen[8:].all()
    assert not chosen[0]  # without errors to tell them apart, the old learner predicts
    chosen, outcome, _ = outcome_of(0.1, 0.3)
    assert outcome == "kept"
    assert not chosen[-1]


def test_fresh_learner_that_is_no_better_loses_after_as_many_rows_as_the_old_one_had():
    assert outcome_of(0.1, 0.1, limit=1024)[1:][0] == "kept"
    chosen, outcome, trial = outcome_of(0.1, 0.1, n=1000)
    assert outcome is None
    assert trial.age == len(chosen) == 1000


def test_drift_in_words():
    assert str(Drift(1200, None, "warned")) == "alarm after 1,200 examples"
    assert "on trial" in str(Drift(1200, None, "trial"))
    assert str(Drift(1200, 1300, "kept")).endswith("the old learner was kept after 1,300")
