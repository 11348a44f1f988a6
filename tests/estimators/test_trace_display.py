"""What `TraceDisplay` draws, number by number."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from maxcosine import AggressiveROMMAClassifier, MCPClassifier, OnlineClassifier, TraceDisplay
from maxcosine.estimators.trace_display import MAX_DOTS, MAX_POINTS
from tests.learners import points

matplotlib.use("Agg")

PANELS = ("mistakes", "ell", "ceiling", "steps")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def three_classes():
    X, y = points(3)
    return MCPClassifier().fit(X, np.array(["red", "green", "blue"])[y], trace=True)


def names_in(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_lines_are_the_curves_of_each_head(three_classes):
    display = TraceDisplay.from_estimator(three_classes)
    assert display.lines_.shape == (4, 3)
    for head in range(3):
        steps = three_classes.trace_[three_classes.trace_["head"] == head]
        n = np.arange(1, len(steps) + 1)
        curves = {
            "mistakes": [100 * np.mean(steps["mistake"][:k]) for k in n],
            "ell": steps["coef_sum"] / steps["norm"],
            "ceiling": [1 / steps["ell"][:k].max() for k in n],
        }
        for panel, expected in curves.items():
            line = display.lines_[PANELS.index(panel), head]
            assert line.get_xdata().tolist() == n.tolist()
            np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-12)
    assert display.trace is three_classes.trace_
    assert list(display.axes_) == display.figure_.axes


def test_dots_are_the_relative_steps_and_the_line_their_medians():
    """Lambda' / norm(w') = (ell + x) / sqrt(1 + sq_x x^2 + 2 g x): Lemma 1, with x as it is drawn."""
    X, y = points()
    learner = AggressiveROMMAClassifier(fit_intercept=False).fit(X, y, trace=True)
    display = TraceDisplay.from_estimator(learner, panels="steps")
    dots, line = display.axes_[0].lines
    assert line is display.lines_[0, 0]
    trace = learner.trace_
    for number, x in zip(dots.get_xdata(), dots.get_ydata(), strict=True):
        before, after = trace[number - 2 : number]
        g, sq_x = after["margin"] / before["norm"], np.dot(X[after["row"]], X[after["row"]])
        expected = (before["ell"] + x) / np.sqrt(1 + sq_x * x**2 + 2 * g * x)
        assert after["ell"] == pytest.approx(expected, rel=1e-9)
    moved = (trace["add"][1:] > 0) & (trace["keep"][1:] > 0)
    assert len(dots.get_xdata()) == moved.sum() > 10
    assert np.all(np.diff(line.get_xdata()) > 0)
    assert dots.get_ydata().min() <= line.get_ydata().min() <= line.get_ydata().max() <= dots.get_ydata().max()


def test_long_traces_are_thinned_and_end_where_the_trace_ends():
    X, y = points(n_rows=20_000)
    learner = OnlineClassifier("perceptron", passes=2).fit(X, y, trace=True)
    display = TraceDisplay.from_estimator(learner)
    for panel, line in zip(PANELS[:3], display.lines_[:3, 0], strict=True):
        assert len(line.get_xdata()) <= MAX_POINTS, panel
        assert (line.get_xdata()[0], line.get_xdata()[-1]) == (1, 40_000)
    assert display.lines_[0, 0].get_ydata()[-1] == pytest.approx(100 * learner.certificate_.mistakes / 40_000)
    assert len(display.axes_[3].lines[0].get_xdata()) <= MAX_DOTS


def test_axes_are_labelled_logarithmic_and_in_plain_numbers(three_classes):
    display = TraceDisplay.from_estimator(three_classes)
    display.figure_.canvas.draw()
    for ax in display.axes_:
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert ax.get_ylabel()
    assert [ax.get_xlabel() for ax in display.axes_] == ["", "", "examples seen", "examples seen"]
    texts = [text.get_text() for text in display.axes_[2].get_xticklabels()]
    assert {"1", "10", "100"} <= set(texts)


def test_classes_are_named_beside_the_panels(three_classes):
    display = TraceDisplay.from_estimator(three_classes)
    display.figure_.canvas.draw()
    (legend,) = display.figure_.legends
    assert names_in(legend) == ["blue", "green", "red"]
    assert legend.get_title().get_text() == "class"
    panels = max(ax.get_window_extent().x1 for ax in display.axes_)
    assert legend.get_window_extent().x0 > panels


def test_one_head_needs_no_legend():
    display = TraceDisplay.from_estimator(MCPClassifier(multiclass="joint").fit(*points(3), trace=True))
    assert display.lines_.shape == (4, 1)
    assert display.figure_.legends == []


def test_own_axes_panels_heads_and_styles(three_classes):
    figure, axes = pyplot.subplots(1, 2)
    options = {"panels": ["ceiling", "ell"], "heads": [2, 0], "line_kw": {"linestyle": "--"}}
    display = TraceDisplay.from_trace(three_classes.trace_, ax=axes, **options)
    assert display.figure_ is figure
    assert list(display.axes_) == list(axes)
    assert display.lines_.shape == (2, 2)
    assert {line.get_linestyle() for line in display.lines_.ravel()} == {"--"}
    assert names_in(axes[0].get_legend()) == ["2", "0"]
    assert len({line.get_color() for line in display.lines_[0]}) == 2
    alone = TraceDisplay.from_estimator(three_classes, ax=pyplot.figure().add_subplot(), panels="ell")
    assert alone.lines_.shape == (1, 3)


def test_many_heads_have_different_colours():
    X, y = points(30, n_rows=90)
    display = TraceDisplay.from_estimator(MCPClassifier().fit(X, y, trace=True), panels="ell")
    assert len({tuple(line.get_color()) for line in display.lines_[0]}) == 30


def test_joined_traces_of_chunks_are_drawn_as_one():
    X, y = points()
    learner = MCPClassifier()
    parts = [learner.partial_fit(X[k : k + 40], y[k : k + 40], [0, 1], trace=True).trace_ for k in (0, 40, 80)]
    joined = TraceDisplay.from_trace(np.concatenate(parts))
    whole = TraceDisplay.from_estimator(MCPClassifier().partial_fit(X, y, [0, 1], trace=True))
    for line, expected in zip(joined.lines_.ravel(), whole.lines_.ravel(), strict=True):
        assert np.array_equal(line.get_xydata(), expected.get_xydata())


# Errors


def test_classifier_without_a_trace_is_refused():
    with pytest.raises(ValueError, match="this MCPClassifier has no trace_; call its fit with trace=True"):
        TraceDisplay.from_estimator(MCPClassifier().fit(*points()))


def test_other_arrays_and_empty_traces_are_refused(three_classes):
    with pytest.raises(ValueError, match="not an array as trace_ is one"):
        TraceDisplay.from_trace(np.zeros((3, 10)))
    with pytest.raises(ValueError, match="the trace has no step"):
        TraceDisplay.from_trace(three_classes.trace_[:0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"panels": ["margin"]}, "choose from mistakes, ell, ceiling, steps"),
        ({"panels": []}, "choose from mistakes, ell, ceiling, steps"),
        ({"heads": [0, 3]}, r"no step of head 3; its heads are \[0, 1, 2\]"),
        ({"heads": []}, "heads is empty"),
    ],
)
def test_unknown_panels_and_heads_are_refused(three_classes, options, message):
    with pytest.raises(ValueError, match=message):
        TraceDisplay.from_estimator(three_classes, **options)


def test_wrong_number_of_axes_is_refused(three_classes):
    with pytest.raises(ValueError, match="ax has 1 axes for 4 panels; give one for each"):
        TraceDisplay.from_estimator(three_classes, ax=pyplot.figure().add_subplot())


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, maxcosine; maxcosine.TraceDisplay; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_error_says_what_to_install(three_classes, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'maxcosine\[plot\]'"):
        TraceDisplay.from_estimator(three_classes)
