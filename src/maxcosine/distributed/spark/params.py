"""The parameters that the estimator and its model share, as Spark ML declares parameters."""

from __future__ import annotations

from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFitIntercept, HasWeightCol

from maxcosine.distributed.parts import Job
from maxcosine.distributed.spark.watch import PATIENCE
from maxcosine.estimators import OnlineClassifier

ON_BAD = ("error", "skip")


def _param(name: str, doc: str, convert: Any) -> Any:
    return Param(Params._dummy(), name, doc, convert)


class MaxCosineParams(HasWeightCol, HasFitIntercept):
    """How to learn; the columns' names are with Spark's own base classes."""

    rule = _param("rule", "a name in maxcosine.RULES", TypeConverters.toString)
    ruleParams = _param("ruleParams", "values of the rule's parameters, by name", TypeConverters.identity)
    average = _param("average", "predict with the mean of all hypotheses", TypeConverters.toBoolean)
    multiclass = _param("multiclass", "several classes: 'ovr' or 'joint'", TypeConverters.toString)
    dtype = _param("dtype", "of the weights: 'float32', 'float64'; '': as the data", TypeConverters.toString)
    how = _param("how", "parts are merged: 'certified' or 'mean'", TypeConverters.toString)
    rounds = _param("rounds", "passes over the data", TypeConverters.toInt)
    fanIn = _param("fanIn", "parts merged at a time, in a tree; 0: all", TypeConverters.toInt)
    onBad = _param("onBad", "a row that cannot be used: 'error' or 'skip'", TypeConverters.toString)
    executorTimeout = _param(
        "executorTimeout", "seconds without any executor until a job ends; 0: never", TypeConverters.toFloat
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._setDefault(
            rule="mcp",
            ruleParams={},
            average=False,
            multiclass="ovr",
            dtype="",
            how="certified",
            rounds=1,
            fanIn=16,
            onBad="error",
            executorTimeout=PATIENCE,
        )

    def _value(self, name: str) -> Any:
        return self.getOrDefault(name)

    def _skips(self) -> bool:
        on_bad = self._value("onBad")
        if on_bad not in ON_BAD:
            raise ValueError(f"onBad={on_bad!r}; it is one of {', '.join(ON_BAD)}")
        return bool(on_bad == "skip")

    def _job(self) -> Job:
        """What is to be learnt; the first to refuse values that cannot be."""
        estimator = OnlineClassifier(
            self._value("rule"),
            rule_params=self._value("ruleParams") or None,
            average=self._value("average"),
            fit_intercept=self._value("fitIntercept"),
            multiclass=self._value("multiclass"),
            dtype=self._value("dtype") or None,
        )
        job = Job(estimator, self._value("how"), self._value("rounds"), self._value("fanIn"))
        rule, given = estimator._rule()
        rule.make_params(given)
        return job
