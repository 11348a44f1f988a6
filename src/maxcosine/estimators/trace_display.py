"""Plots of what a classifier did with each example. Matplotlib is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxcosine.trace import STEP

if TYPE_CHECKING:
    from maxcosine.estimators.base import OnlineBase

# A line has at most this many points, evenly spaced on a logarithmic axis; more could not be seen.
MAX_POINTS = 1000

# Single steps are drawn as dots, at most this many in all; their medians over this many intervals as a line.
MAX_DOTS, INTERVALS = 3000, 25

# Colours of matplotlib's default cycle; more heads than these get colours of a continuous map.
N_COLOURS, COLOUR_MAP = 10, "viridis"

NAMES_PER_COLUMN = 25

# An axis over fewer decades than this has ticks at 1, 2 and 5 of each. Numbers outside these are powers of ten.
FEW_DECADES = 2.5
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-4, 1e7

Curve = tuple[np.ndarray, np.ndarray]


class Panel(NamedTuple):
    """What one pair of axes shows of the steps of one head."""

    curve: Callable[[np.ndarray], Curve]
    label: str


def mistakes_so_far(steps: np.ndarray) -> Curve:
    """Return the margins <= 0 in 100 examples of one head, from the first step to each."""
    return _thinned(steps["example"], 100.0 * np.cumsum(steps["mistake"]) / np.arange(1, len(steps) + 1))


def ell(steps: np.ndarray) -> Curve:
    """Return Lambda / norm(w) after each step of one head."""
    return _thinned(steps["example"], steps["ell"])


def ceiling(steps: np.ndarray) -> Curve:
    """Return 1 / the largest ell so far, after each step of one head."""
    with np.errstate(divide="ignore"):
        return _thinned(steps["example"], 1.0 / np.maximum.accumulate(steps["ell"]))


def relative_steps(steps: np.ndarray) -> Curve:
    """Return add / norm(keep * w) of each step that adds to a w != 0, with w as it was before the step."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = steps["add"][1:] / (steps["keep"][1:] * steps["norm"][:-1])
    moved = (x > 0.0) & np.isfinite(x)
    return steps["example"][1:][moved], x[moved]


def median_steps(steps: np.ndarray) -> Curve:
    """Return the medians of `relative_steps` over intervals that are evenly spaced on a logarithmic axis."""
    examples, x = relative_steps(steps)
    if len(x) == 0:
        return examples, x
    edges = np.geomspace(examples[0] + 1, examples[-1] + 1, INTERVALS + 1)[1:-1]
    parts = np.searchsorted(examples + 1, edges)
    groups = [group for group in np.split(np.arange(len(x)), parts) if len(group)]
    medians = np.array([np.median(x[group]) for group in groups])
    return np.array([np.median(examples[group]) for group in groups]), medians


def _thinned(examples: np.ndarray, values: np.ndarray) -> Curve:
    chosen = _spread(len(values), MAX_POINTS)
    return examples[chosen], values[chosen]


def _spread(n: int, most: int) -> np.ndarray:
    """Return at most `most` of the positions 0 to n - 1, evenly spaced on a logarithmic axis."""
    return np.unique(np.geomspace(1, n, most).astype(np.intp)) - 1 if n > most else np.arange(n)


PANELS: Mapping[str, Panel] = {
    "mistakes": Panel(mistakes_so_far, "mistakes in 100 examples, so far"),
    "ell": Panel(ell, r"$\ell = \Lambda\,/\,\|w\|$   (1 / unit of $x$)"),
    "ceiling": Panel(ceiling, r"margin ceiling $1\,/\,\max\,\ell$   (unit of $x$)"),
    "steps": Panel(median_steps, r"step, add / $\|w\|$   (1 / unit of $x$)"),
}


class TraceDisplay:
    """Plots of a trace: mistakes, ell, margin ceiling and steps over the examples, one line for each head.

    Use :meth:`from_estimator` or :meth:`from_trace` to draw them. All parameters are stored as attributes.

    - Mistakes: in 100 examples, how many margins of the head were 0 or below before the example was learnt,
      since the trace began.
    - ell = Lambda / norm(w) after the step.
    - The margin ceiling: 1 / the largest ell since the trace began. It is the value of real arithmetic, from
      scalars as the engine tracks them; ``certificate_.margin_ceiling`` is what is proven, rounding included.
    - Steps: add / norm(keep w) with w as it was before the step, the relative step of the framework; a line
      shows the medians, dots show steps. Examples that changed nothing, or from which w started anew, are
      left out.

    Plotting needs matplotlib: ``pip install 'maxcosine[plot]'``.

    Parameters
    ----------
    trace : structured array
        The steps, as `trace_` of a classifier has them.
    head_names : sequence of str, default=None
        A name for each head, for the legend; by default its number.

    Attributes
    ----------
    axes_ : array of matplotlib Axes
        The axes, in the order of the panels.
    figure_ : matplotlib Figure
        The figure.
    lines_ : array of matplotlib Line2D of shape (n_panels, n_heads)
        The lines.

    See Also
    --------
    OnlineClassifier.fit : Traces what it does with ``trace=True``.

    Examples
    --------
    >>> from maxcosine import MCPClassifier, TraceDisplay
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = MCPClassifier().fit(X, y, trace=True)
    >>> display = TraceDisplay.from_estimator(learner)
    >>> display.lines_.shape
    (4, 10)
    """

    axes_: np.ndarray
    figure_: Any
    lines_: np.ndarray

    def __init__(self, *, trace: np.ndarray, head_names: Sequence[str] | None = None) -> None:
        self.trace = trace
        self.head_names = head_names

    @classmethod
    def from_estimator(cls, estimator: OnlineBase, **options: Any) -> Self:
        """Plot the trace of a classifier that was fitted with ``trace=True``.

        Parameters
        ----------
        estimator : classifier
            A classifier of maxcosine with the attribute `trace_`.
        **options : dict
            The parameters of :meth:`plot`.

        Returns
        -------
        TraceDisplay
            The display.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "trace_"):
            raise ValueError(f"this {type(estimator).__name__} has no trace_; call its fit with trace=True")
        classes = estimator.classes_
        names = [str(label) for label in classes] if len(estimator.model_.heads.table) > 1 else None
        return cls.from_trace(estimator.trace_, head_names=names, **options)

    @classmethod
    def from_trace(cls, trace: np.ndarray, *, head_names: Sequence[str] | None = None, **options: Any) -> Self:
        """Plot a trace.

        Parameters
        ----------
        trace : structured array
            The steps, as `trace_` of a classifier has them: of one call, or of several calls joined by
            :func:`numpy.concatenate`.
        head_names : sequence of str, default=None
            A name for each head, for the legend; by default its number.
        **options : dict
            The parameters of :meth:`plot`.

        Returns
        -------
        TraceDisplay
            The display.
        """
        trace = np.asarray(trace)
        if trace.dtype != STEP or trace.ndim != 1:
            raise ValueError("the trace is not an array as trace_ is one: of one dimension, with the fields of a step")
        if len(trace) == 0:
            raise ValueError("the trace has no step; were there only rows of weight 0, or without features?")
        return cls(trace=trace, head_names=head_names).plot(**options)

    def plot(
        self,
        ax: Any = None,
        *,
        panels: Sequence[str] = tuple(PANELS),
        heads: Sequence[int] | None = None,
        line_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes, or array of them, default=None
            Where to draw, one for each panel; by default in a new figure.
        panels : sequence of {"mistakes", "ell", "ceiling", "steps"}, default=all of them
            What to draw.
        heads : sequence of int, default=None
            The heads to draw; by default all in the trace.
        line_kw : dict, default=None
            Options for the lines, as `matplotlib.axes.Axes.plot` takes them.

        Returns
        -------
        TraceDisplay
            This display.
        """
        pyplot = _pyplot()
        panels = [panels] if isinstance(panels, str) else list(panels)
        if not panels or set(panels) - set(PANELS):
            raise ValueError(f"panels={panels!r}: choose from {', '.join(PANELS)}")
        by_head = self._steps_of(heads)
        axes = _new_axes(pyplot, len(panels)) if ax is None else np.atleast_1d(np.asarray(ax, object)).ravel()
        if len(axes) != len(panels):
            raise ValueError(f"ax has {len(axes)} axes for {len(panels)} panels; give one for each")
        colours = _colours(pyplot, len(by_head))
        self.lines_ = np.array(
            [
                [
                    self._draw(one, name, steps, {"color": colour, "label": self._name(head), **(line_kw or {})})
                    for (head, steps), colour in zip(by_head.items(), colours, strict=True)
                ]
                for one, name in zip(axes, panels, strict=True)
            ]
        )
        for one, name in zip(axes, panels, strict=True):
            _label(one, PANELS[name].label, below=ax is not None or one.get_subplotspec().is_last_row())
        self.axes_, self.figure_ = axes, axes[0].figure
        if len(by_head) > 1:
            self._add_legend(new_figure=ax is None)
        return self

    def _steps_of(self, heads: Sequence[int] | None) -> dict[int, np.ndarray]:
        """Return the steps of each head to draw."""
        known = np.unique(self.trace["head"]).tolist()
        unknown = [] if heads is None else sorted(set(heads) - set(known))
        if unknown:
            raise ValueError(f"heads: the trace has no step of head {unknown[0]}; its heads are {known}")
        chosen = known if heads is None else list(heads)
        if not chosen:
            raise ValueError("heads is empty; leave it out to draw all heads")
        return {head: self.trace[self.trace["head"] == head] for head in chosen}

    def _name(self, head: int) -> str:
        return str(head) if self.head_names is None else str(self.head_names[head])

    def _draw(self, ax: Any, panel: str, steps: np.ndarray, line_kw: Mapping[str, Any]) -> Any:
        """Draw the curve of one head; returns its line."""
        if panel == "steps":
            examples, x = relative_steps(steps)
            share = len(steps) / len(self.trace)
            chosen = _spread(len(x), max(1, round(MAX_DOTS * share)))
            ax.plot(examples[chosen] + 1, x[chosen], ".", color=line_kw["color"], ms=2, alpha=0.3, rasterized=True)
        examples, values = PANELS[panel].curve(steps)
        style = {"linewidth": 1.3, "drawstyle": "default" if panel == "steps" else "steps-post"}
        return ax.plot(examples + 1, values, **{**style, **line_kw})[0]

    def _add_legend(self, *, new_figure: bool) -> None:
        """Add the names of the heads, beside the panels where the figure is ours."""
        lines = list(self.lines_[0])
        title = "head" if self.head_names is None else "class"
        columns = -(-len(lines) // NAMES_PER_COLUMN)
        if new_figure:
            self.figure_.legend(handles=lines, title=title, loc="outside right upper", ncols=columns, frameon=False)
        else:
            self.axes_[0].legend(handles=lines, title=title, ncols=columns)


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("TraceDisplay draws with matplotlib; pip install 'maxcosine[plot]'") from error
    return pyplot


def _new_axes(pyplot: Any, n: int) -> np.ndarray:
    n_columns = min(n, 2)
    n_rows = -(-n // n_columns)
    size = (4.8 * n_columns + 0.6, 3.4 * n_rows)
    figure, axes = pyplot.subplots(n_rows, n_columns, figsize=size, sharex=True, squeeze=False, layout="constrained")
    for unused in axes.ravel()[n:]:
        figure.delaxes(unused)
    return np.asarray(axes.ravel()[:n])


def _label(ax: Any, label: str, *, below: bool) -> None:
    """Make both axes logarithmic and label them, the horizontal one if `below`."""
    ax.set(xscale="log", yscale="log", xlabel="examples seen" if below else "", ylabel=label)
    ax.grid(alpha=0.3)
    ax.margins(x=0.02)
    _set_ticks(ax.xaxis, "{x:,.0f}")
    _set_ticks(ax.yaxis, "{x:g}")


def _set_ticks(axis: Any, text: str) -> None:
    """Label a logarithmic axis with plain numbers, or with powers of ten where these would be long."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    few, plain = high < low * 10**FEW_DECADES, low >= SMALLEST_PLAIN and high <= LARGEST_PLAIN
    powers = LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf))  # labels every tick
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(StrMethodFormatter(text) if plain else powers)
    axis.set_minor_formatter(NullFormatter())


def _colours(pyplot: Any, n: int) -> list[Any]:
    if n <= N_COLOURS:
        return [f"C{k}" for k in range(n)]
    return list(pyplot.get_cmap(COLOUR_MAP)(np.linspace(0.0, 0.95, n)))
