"""The parameters that the estimator and its model share."""

from __future__ import annotations

from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFitIntercept, HasWeightCol

from maxcosine.distributed.jobs import Job
from maxcosine.distributed.spark.cluster import PATIENCE
from maxcosine.estimators import OnePassClassifier, OnlineClassifier
from maxcosine.estimators.base import StreamClassifier

ONE_PASS = "onepass"
"""The name of `OnePassClassifier` among the rules."""

# Parameters that it does not have.
OF_RULES = ("ruleParams", "average", "multiclass", "fitIntercept")


def _param(name: str, doc: str, convert: Any) -> Any:
    return Param(Params._dummy(), name, doc, convert)


class MaxCosineParams(HasWeightCol, HasFitIntercept):
    """How to learn. Spark's base classes declare the names of the columns."""

    rule = _param("rule", "a name in maxcosine.RULES, or 'onepass'", TypeConverters.toString)
    ruleParams = _param("ruleParams", "the rule's parameters, by name", TypeConverters.identity)
    average = _param("average", "predict with the mean of all hypotheses", TypeConverters.toBoolean)
    multiclass = _param("multiclass", "how to learn several classes: 'ovr', 'joint'", TypeConverters.toString)
    dtype = _param("dtype", "type of the weights; '' is that of the features", TypeConverters.toString)
    how = _param("how", "how to merge: 'certified' or 'mean'", TypeConverters.toString)
    rounds = _param("rounds", "number of passes over the data", TypeConverters.toInt)
    fanIn = _param("fanIn", "number of models per merge; 0: all", TypeConverters.toInt)
    onBad = _param("onBad", "what to do with bad rows: 'error' or 'skip'", TypeConverters.toString)
    executorTimeout = _param("executorTimeout", "seconds without executors; 0: no limit", TypeConverters.toFloat)

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

    def _skip_bad(self) -> bool:
        """Tell whether bad rows are skipped."""
        on_bad = self.getOrDefault("onBad")
        if on_bad not in ("error", "skip"):
            raise ValueError(f"onBad={on_bad!r}; choose one of error, skip")
        return bool(on_bad == "skip")

    def _job(self) -> Job:
        """Return the job with these parameters; raises an error for values that are not allowed."""
        value = self.getOrDefault
        estimator: StreamClassifier
        if value("rule") == ONE_PASS:
            for name in OF_RULES:
                if self.isSet(name):
                    raise ValueError(f"{name} does not apply to rule={ONE_PASS!r}; leave it out")
            estimator = OnePassClassifier(dtype=value("dtype") or None)
            return Job(estimator, value("how"), value("rounds"), value("fanIn"))
        estimator = OnlineClassifier(
            value("rule"),
            rule_params=value("ruleParams") or None,
            average=value("average"),
            fit_intercept=value("fitIntercept"),
            multiclass=value("multiclass"),
            dtype=value("dtype") or None,
        )
        return Job(estimator, value("how"), value("rounds"), value("fanIn"))
