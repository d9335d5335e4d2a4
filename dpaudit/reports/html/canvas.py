"""Draw a figure as inline SVG, from curves, areas and marks. Needs matplotlib.

matplotlib's axes take 45 ms for each figure, its SVG renderer alone 2 ms. Each shape has a CSS
class and no colour, so that the style sheet can colour it for light and dark pages. A figure
contains no text from a user, so such text cannot become markup.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

from dpaudit.reports import numbers

WIDTH, HEIGHT = 340.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 12.0, 28.0, 38.0
_TAG, _NUMBER = re.compile("<[^>]+>"), re.compile(r"-?\d+\.\d+")
_STYLE = re.compile(r' style="[^"]*"')
_MOVED = re.compile(r' transform="translate\(([-\d.]+) ([-\d.]+)\)[^"]*"')
_SPACES = re.compile(r">\s+<")
_RADIUS = 4.5

Points = Sequence[tuple[float, float]]

# Number of straight lines that approximate a curve.
STEPS = 48


@dataclass(frozen=True, slots=True)
class Key:
    """An entry in the legend of a figure: the CSS class of a shape, its form (`line`, `area`, or a
    key of `SHAPES`), and its meaning in words."""

    kind: str
    shape: str
    words: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with its texts.

    drawing: content of the SVG element.
    keys: the legend.
    alt: description of the figure in words.
    notes: sentences on how to read the figure.
    head, rows: header and rows of a table with the numbers of the figure.
    """

    name: str
    title: str
    drawing: str
    keys: tuple[Key, ...]
    alt: str
    notes: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def ratio(count: int, draws: int) -> float:
    """Return count / draws, or 0 if `draws` is 0."""
    return count / draws if draws else 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """One axis of a figure, from `low` to `high`."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value on the axis, from 0 (`low`) to 1 (`high`)."""
        low, high = self._placed(self.low), self._placed(self.high)
        return min(1.0, max(0.0, (self._placed(value) - low) / (high - low)))

    def ticks(self) -> list[tuple[float, str]]:
        """Return a list of (value, label) for the round values that the axis shows."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            step = max(1, math.ceil((last - first) / 5))
            return [(10.0**exponent, _power(exponent)) for exponent in range(first, last + 1, step)]
        locator = _tools().ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
        values = map(float, locator.tick_values(self.low, self.high))
        room = 1e-9 * (self.high - self.low)
        inside = [value for value in values if self.low - room <= value <= self.high + room]
        return [(value, _written(value)) for value in inside]

    def _placed(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.is_log else value


class Canvas:
    """A figure to which methods add shapes and text. `kind` is the CSS class of the new shape."""

    def __init__(self, x: Scale, y: Scale, x_label: str, y_label: str) -> None:
        tools = _tools()
        self.x, self.y = x, y
        self._path, self._text = tools.path.Path, io.StringIO()
        self._renderer = tools.svg.RendererSVG(WIDTH, HEIGHT, self._text)
        self._pen, self._font = self._renderer.new_gc(), tools.font
        self._labels: list[tuple[str, float, float, str]] = []
        self._as_it_is = tools.transforms.IdentityTransform()
        with self._group("frame"):
            for value, _ in y.ticks():
                self._draw([self._at(x.low, value), self._at(x.high, value)])
        self._words(4, HEIGHT - 14, y_label, "start", "label")
        self._words(WIDTH - _RIGHT, 5, x_label, "end", "label")
        for value, words in y.ticks():
            self._words(_LEFT - 5, self._at(x.low, value)[1] - 3.5, words, "end", "tick")

    def ticks(self) -> None:
        """Write the round values of the horizontal axis below it."""
        for value, words in self.x.ticks():
            self.tick(value, words)

    def tick(self, value: float, words: str) -> None:
        """Write `words` below the horizontal axis at the position of `value`."""
        self._words(self._at(value, self.y.low)[0], _BOTTOM - 14, words, "middle", "tick")

    def line(self, kind: str, points: Points) -> None:
        """Draw a line through the points."""
        with self._group(kind):
            self._draw([self._at(*point) for point in points])

    def steps(self, kind: str, heights: Sequence[float]) -> None:
        """Draw the outline of adjacent bars of width 1, which start at 0 on the axis."""
        outline = [(0.0, 0.0)]
        for index, height in enumerate(heights):
            outline += [(float(index), height), (index + 1.0, height)]
        self.line(kind, [*outline, (float(len(heights)), 0.0)])

    def area(self, kind: str, points: Points) -> None:
        """Fill the polygon whose corners are the points."""
        with self._group(kind):
            self._draw([self._at(*point) for point in points], is_closed=True)

    def box(self, kind: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        """Draw a rectangle, at least 2 points wide and high, so that it stays visible."""
        (left, below), (right, above) = self._at(x[0], y[0]), self._at(x[1], y[1])
        wide, high = max(0.0, 2 - (right - left)) / 2, max(0.0, 2 - (above - below)) / 2
        left, right, below, above = left - wide, right + wide, below - high, above + high
        with self._group(kind):
            corners = [(left, below), (right, below), (right, above), (left, above)]
            self._draw(corners, is_closed=True)

    def mark(self, kind: str, shape: str, x: float, y: float, size: float = 1.0) -> None:
        """Draw a mark, a key of `SHAPES`, at (x, y), `size` times as large as usual."""
        (middle, above), radius = self._at(x, y), size * _RADIUS
        points = [(middle + radius * dx, above + radius * dy) for dx, dy in SHAPES[shape]]
        with self._group(f"mark {kind}"):
            self._draw(points, is_closed=True)

    def word(self, x: float, y: float, words: str, anchor: str = "middle") -> None:
        """Write `words` just above (x, y); `anchor` (start, middle or end) is their part at x."""
        self._words(*self._at(x, y), words, anchor, "word")

    def markup(self) -> str:
        """Return the drawing as the content of an SVG element of WIDTH x HEIGHT."""
        with _as_text():
            for kind, x, y, words in self._labels:
                with self._group(kind):
                    self._renderer.draw_text(self._pen, x, HEIGHT - y, words, self._font, 0.0)
        self._renderer.finalize()
        svg = self._text.getvalue().partition("</defs>")[2].rpartition("</svg>")[0]
        svg = svg.replace(" \n", " ").replace("\n", " ")
        svg = _STYLE.sub("", svg).replace(' id="', ' class="').replace(" L ", " ")
        svg = _MOVED.sub(r' x="\1" y="\2"', svg)
        # Round coordinates to a tenth of a point, which makes files smaller. Only numbers inside
        # tags are coordinates; numbers outside tags are text and keep their digits.
        svg = _TAG.sub(lambda tag: _NUMBER.sub(_short, tag[0]), svg)
        return _SPACES.sub("><", svg).strip()

    def _at(self, x: float, y: float) -> tuple[float, float]:
        width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        return _LEFT + width * self.x.share(x), _BOTTOM + height * self.y.share(y)

    def _draw(self, points: Points, *, is_closed: bool = False) -> None:
        vertices = [points[0], *(new for old, new in pairwise(points) if new != old)]
        path = self._path(vertices + vertices[:1] if is_closed else vertices, closed=is_closed)
        self._renderer.draw_path(self._pen, path, self._as_it_is)

    def _words(self, x: float, y: float, words: str, anchor: str, kind: str) -> None:
        self._labels.append((f"{kind} {anchor}", x, y, words))

    @contextmanager
    def _group(self, kind: str) -> Iterator[None]:
        self._renderer.open_group(kind, kind)
        yield
        self._renderer.close_group(kind)


def _circle(corners: int = 16) -> Points:
    turns = [2 * math.pi * index / corners for index in range(corners)]
    return [(math.cos(turn), math.sin(turn)) for turn in turns]


# Maps the name of a mark to the corners of its polygon, relative to its centre. 1 is the radius of
# the mark.
SHAPES = {
    "circle": _circle(),
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "diamond": [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    "up": [(-1.1, -0.9), (1.1, -0.9), (0.0, 1.2)],
    "right": [(-0.9, -1.1), (1.2, 0.0), (-0.9, 1.1)],
}


@contextmanager
def _as_text() -> Iterator[None]:
    """Make matplotlib write words as SVG text, not as outlines of letters."""
    # Set and restore the settings here: matplotlib's rc_context would copy hundreds of settings.
    settings = _tools().matplotlib.rcParams
    font_type = settings["svg.fonttype"]
    settings["svg.fonttype"] = "none"
    try:
        yield
    finally:
        settings["svg.fonttype"] = font_type


def _short(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _power(exponent: int) -> str:
    return {-1: "0.1", 0: "1", 1: "10", 2: "100"}.get(exponent, f"1e{exponent}")


def _written(value: float) -> str:
    if value >= 1000 and value % 100 == 0:
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                return f"{numbers.plain(value / size)}{letter}"
    return numbers.plain(round(value, 12))


@cache
def _tools() -> SimpleNamespace:
    """Return the parts of matplotlib that figures need."""
    # Imported here, since the import takes a second.
    import matplotlib
    from matplotlib import path, ticker, transforms
    from matplotlib.backends import backend_svg
    from matplotlib.font_manager import FontProperties

    return SimpleNamespace(
        matplotlib=matplotlib,
        path=path,
        ticker=ticker,
        transforms=transforms,
        svg=backend_svg,
        font=FontProperties(size=10),
    )
