"""Draw the figures about the scores of canaries: trade-off curves (miss rate by false-alarm rate),
with the curve of guesses from the scores, and a histogram of the scores."""

from __future__ import annotations

from dpaudit.certificates.one_run import CanaryScores, OneRunCertificate
from dpaudit.certificates.result import AuditResult
from dpaudit.claims.tradeoff import at_bound, tradeoff
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import STEPS, Canvas, Key, Picture, Scale

_NO_BOUND = (
    "The curve of the scores is an estimate, and proves nothing by itself: if the canaries leak "
    "together, it may lie below the claim by chance. The verdict follows from the guesses."
)


def score_pictures(result: AuditResult, one: OneRunCertificate) -> list[Picture]:
    """Return the figures about the scores, or [] if the user gave guesses without scores."""
    if one.scores is None:
        return []
    return [_errors(result, one, one.scores), _histogram(one.scores)]


def _errors(result: AuditResult, one: OneRunCertificate, scores: CanaryScores) -> Picture:
    """Return a figure with three trade-off curves (miss rate by false-alarm rate): of the claim, of
    the certified bound, and of the guess that canaries with a score above a cut-off were
    included."""
    canvas = Canvas(Scale(0, 1), Scale(0, 1), "false positives", "misses")
    canvas.ticks()
    alphas = [(step / (2 * STEPS)) ** 2 for step in range(2 * STEPS + 1)]
    curve = [(alpha, tradeoff(result.claim, alpha)) for alpha in alphas]
    canvas.area("region", [*curve, (1.0, 1.0)])
    canvas.line("even", [(0.0, 1.0), (1.0, 0.0)])
    canvas.line("claim", curve)
    mu = None if one.mu_lower is None else float(numbers.at_least(one.mu_lower))
    certified = at_bound(float(numbers.at_least(one.epsilon_lower)), one.point.delta, mu)
    if certified is not None:
        canvas.line("bound", [(alpha, tradeoff(certified, alpha)) for alpha in alphas])
    canvas.line("d1", [(wrong, 1 - right) for wrong, right in scores.roc])
    at_least = certified.describe() if certified is not None else "nothing"
    bound = f"certified: no guarantee below {at_least} holds"
    return Picture(
        "roc",
        "Errors of guesses from the scores",
        canvas.markup(),
        (Key("claim", "line", "fewest misses under the claim"),
         Key("region", "area", "allowed by the claim"), Key("d1", "line", "the scores"),
         *((Key("bound", "line", bound),) if certified is not None else ()),
         Key("even", "line", "blind guesses")),
        f"The curve of the claim, and that of the scores, with an AUROC of "
        f"{numbers.about(scores.auroc)}. Certified is {at_least}.",
        (_NO_BOUND,),
        ("false positives, at most", "true positives", "at least", "at most"),
        tuple(
            (numbers.share(rate.false_positives), numbers.share(rate.above / scores.included),
             numbers.share(rate.lower, numbers.DOWN), numbers.share(rate.upper, numbers.UP))
            for rate in scores.rates
        ),
    )  # fmt: skip


def _histogram(scores: CanaryScores) -> Picture:
    """Return a figure with two histograms: scores of the canaries that the training included, and
    scores of the others."""
    inside = [count / scores.included for count, _ in scores.histogram]
    outside = [count / scores.excluded for _, count in scores.histogram]
    bins = len(inside)
    canvas = Canvas(Scale(0, bins), Scale(0, 1.1 * max(*inside, *outside)), "score", "share")
    for place in range(0, bins + 1, bins // 4):
        canvas.tick(place, f"{scores.edges[place]:.3g}")
    canvas.steps("d1", inside)
    canvas.steps("d2", outside)
    return Picture(
        "scores",
        "Scores of the canaries",
        canvas.markup(),
        (Key("d1", "line", f"in ({scores.included:,})"),
         Key("d2", "line", f"out ({scores.excluded:,})")),
        "The shares of the canaries that were in, and of those that were out, by score.",
        (),
        ("score from", "to", "in", "out"),
        tuple(
            (f"{low:.4g}", f"{high:.4g}", f"{both[0]:,}", f"{both[1]:,}")
            for low, high, both in zip(
                scores.edges, scores.edges[1:], scores.histogram, strict=False
            )
        ),
    )  # fmt: skip
