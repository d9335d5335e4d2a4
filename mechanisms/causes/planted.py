"""The list of mechanisms of which one line leaks: which line, and a pair that shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mechanisms.neighbours.planted import PLANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A broken mechanism with the line at fault, and its correct counterpart.

    broken, correct: import paths; None where nothing correct takes the same inputs.  d1, d2:
    neighbours on which the line shows.  params: of both.  also_correct: more correct mechanisms,
    with the same parameters.
    epsilon, delta: the claim, which `correct` satisfies.  rho: the claim is ρ-zCDP instead, if this
    is above 0.  lines: pieces of source, each in the body of the broken mechanism: a trace that
    names a line with one of them has found the fault.  primitives: import paths of functions that
    add noise.
    """

    name: str
    broken: str
    correct: str | None
    d1: Any
    d2: Any
    lines: tuple[str, ...]
    epsilon: float = 1.0
    delta: float = 0.0
    rho: float = 0.0
    primitives: tuple[str, ...] = ()
    also_correct: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)


def _cause(
    module: str, broken: str, correct: str | None, d1: Any, d2: Any, *lines: str, **rest: Any
) -> Cause:
    path = f"mechanisms.{module}"
    return Cause(
        name=(f"gaussian-{broken}" if module == "gaussian" else broken).replace("_", "-"),
        broken=f"{path}:{broken}",
        correct=correct if correct is None or ":" in correct else f"{path}:{correct}",
        d1=d1,
        d2=d2,
        lines=lines,
        **rest,
    )


_SMALL, _LESS = [0.2, 0.7, 1.0], [0.2, 0.7]
_A, _R, _C, _M = "causes.additive", "causes.released", "causes.choices", "causes.modules"
_S = "causes.steps"
_MOVED = ([1.0, 2.0, 1.0], [2.0, 1.0, 2.0])
_VOTES, _FEW, _SUMS = ([3, 2, 1], [2, 2, 1]), ([1, 2, 2], [2, 2, 2]), ([0.2, 1.0], [0.2])

_ADDITIVE = (
    _cause(_A, "half_the_noise", "whole_noise", _SMALL, _LESS, "rng.laplace(scale=0.5)"),
    _cause(_A, "half_of_the_noise", "half_of_twice_the_noise", _SMALL, _LESS, "0.5 * rng"),
    _cause(_A, "total_clipped", "clipped", [2.0, 1.0, 9.0], [2.0, 1.0], "total = ", "rng.laplace("),
    _cause(_A, "not_clipped", "clipped", [0.5, 9.0], [0.5], "math.fsum(data)", "rng.laplace("),
    _cause(_A, "scale_of_the_largest", "scale_of_a_bound", [1.0, 8.0], [1.0], "scale=bound"),
    _cause(_A, "variance_for_deviation", "deviation", [1, 2], [1], "random.gauss", delta=1e-5),
    _cause(_A, "normal_for_pure", "whole_noise", [1, 1], [1], "rng.normal("),
    _cause(_A, "legacy_half", "legacy_whole", [3, 4], [3], "np.random.laplace(size=2)"),
    _cause(_A, "frozen_half", "frozen_whole", [3, 4], [3], "noise.rvs()", "scale=0.5"),
    _cause(_A, "discrete_half", "discrete_whole", [3, 4], [3], "rng.geometric(p)"),
    _cause(_A, "budget_for_each", "budget_split", [6, 7], [6], "rng.laplace(scale=1.0)"),
    _cause(
        *(_A, "clipped_after_the_sum", "each_clipped"),
        *([[1.0, 0.0], [40.0, 30.0]], [[1.0, 0.0], [0.0, 0.0]]),
        *("total = total /", "rng.standard_normal(", "released: Floats"),
        delta=1e-5,
    ),
    _cause(_A, "by_quantiles_half", "by_quantiles", [3, 4], [3], "rng.random()", "-0.5 *"),
    _cause(_A, "sensitivity_of_the_mean", "mean_of_n", [0.0, 0.0], [0.0, 1.0], "scale=0.01"),
    _cause(
        *(_A, "weights_forgotten", "weights_counted"),
        *([{"weight": 1.0}, {"weight": 5.0}], [{"weight": 1.0}], "rng.laplace(scale=1.0)"),
    ),
    _cause(
        *("laplace", "wrong_density", "laplace", 0.0, 1.0, "rng.laplace("),
        epsilon=0.5,
        params={"epsilon": 0.5},
    ),
    _cause(
        *("laplace_queries", "column_sums_linf", "column_sums"),
        *([[0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]], "_noisy("),
    ),
    _cause(_A, "normal_half", "normal_whole", [1, 1], [1], "rng.normal(", rho=0.125),
    _cause(
        *(_A, "laplace_for_concentrated", "laplace_of_half", [1, 1], [1], "rng.laplace("),
        rho=0.125,
    ),
    _cause(_A, "deviation_of_the_data", "normal_whole", [1, 8], [1], "rng.normal(", rho=0.125),
    _cause(_A, "even_noise", "even_noise_of_200", [1, 1], [1], "rng.uniform(", delta=0.01),
    _cause(_A, "one_sided_noise", "even_noise_of_200", [1, 1], [1], "rng.exp", delta=0.01),
    _cause(_A, "one_sided_integers", "discrete_whole", [1, 1], [1], "rng.geo", delta=0.01),
    _cause(_A, "logarithm_of_the_sum", "logarithm_of_one_more", [1.0], [], "rng.laplace("),
    _cause(
        *(_A, "spread_around_the_mean_half", "spread_around_the_mean"),
        *([0.0, 0.5, 1.0], [0.0, 0.5, 0.0], "rng.laplace(scale=0.5)"),
    ),
    _cause(
        *(_A, "divided_by_the_count", "divided_by_a_constant", [0, 0, 0], [0, 0]),
        *("rng.normal(scale=4.0", "len(data)"),
        delta=1e-5,
    ),
    _cause(_A, "random_sign_half", "random_sign", [1, 1], [1], "random.random()", epsilon=0.5),
    _cause(_A, "tossed_sign_half", "tossed_sign", [1, 1], [1], "rng.random())", epsilon=0.5),
)
_RELEASED = (
    _cause(_R, "untouched_start", "two_branches", [-1, -1], [-1, 1], "if not inside"),
    _cause(_R, "untouched_centers", "two_branches", [0.2, 0.9], [0.2], "if not own"),
    _cause(_R, "with_the_count", "with_a_noisy_count", _SMALL, _LESS, "return noisy, len(data)"),
    _cause(_R, "noise_on_a_copy", "noise_on_counts", [0, 1, 2], [0, 1], "return list(counts)"),
    _cause(
        *(_R, "noise_beside_the_count", "other_noise_beside_the_count"),
        _SMALL,
        _LESS,
        *("rng.laplace(", "return noise"),
    ),
    _cause(_R, "noise_forgotten", "noise_always", _SMALL, _LESS, "return total", "rng.laplace("),
    _cause(_R, "few_are_exact", "few_are_noisy", _SMALL, _LESS, "if len(data) < 3:"),
    _cause(_R, "noise_if_any", "noise_always", [0.5], [], "if count > 0:"),
    _cause(_R, "keys_that_occur", "keys_of_a_list", ["red", "blue"], ["red"], "return {key"),
    _cause(_R, "raises_for_large", f"mechanisms.{_A}:clipped", [1.0], [9.0], "raise ValueError"),
    _cause(_R, "divides_by_none", "mean_of_at_least_one", [1.0], [], "mean = total / len(data)"),
    _cause(_R, "one_noise_for_two", "noise_for_each", [1, 0], [1, 0, 0], "noise = ", "return len"),
    _cause(_R, "one_noise_for_all", "noise_on_counts", [0, 1], [0, 1, 2], "return list("),
    _cause(_R, "seeded", "not_seeded", [1.0], [], "default_rng(42)"),
    _cause(_R, "seeded_globally", "twice_exponential", [1.0], [], "random.seed(1234)"),
    _cause(
        _R, "count_of_the_winner", "noisy_count_of_the_winner", *_VOTES, "return winner, votes["
    ),
    _cause(_R, "raises_for_some_winners", "winner_of_any_size", *_FEW, "raise ValueError"),
    _cause(_R, "shows_the_sum_at_times", "shows_nothing_at_times", *_SUMS, "rng.random()", "total"),
    _cause(
        _R,
        "checks_at_times",
        f"mechanisms.{_A}:clipped",
        [0.5, 9.0],
        [0.5],
        "rng.random()",
        "raise",
    ),
    _cause(
        *(_R, "count_of_swapped_votes", "noisy_count_of_the_winner"),
        *([3, 2], [2, 3], "return winner, votes["),
    ),
    _cause(
        *(_R, "says_that_it_clipped", "never_says_that_it_clipped"),
        *([0.5, 9.0], [0.5]),
        *("max(data", 'answer["clipped"]', "return answer"),
    ),
    _cause(
        *("histogram", "noisy_histogram", "thresholded"),
        *(["pizza"], ["pizza", "sushi"], "_noisy("),
        delta=0.01,
    ),
)
_CHOICES = (
    _cause(_C, "largest_quarter", "largest", *_MOVED, "rng.laplace("),
    _cause(_C, "largest_in_a_loop_quarter", "largest_in_a_loop", *_MOVED, "rng.exponential("),
    _cause(_C, "sparse_eighth", "sparse", *_MOVED, "rng.laplace(scale=0.5)"),
    _cause(_C, "sparse_without_noise", "sparse", *_MOVED, "return [answer", "rng.laplace("),
    _cause(_C, "sparse_without_any", "sparse", *_MOVED, "if answer >= THRESHOLD:"),
    _cause(_C, "honest_too_often", "honest", 0, 1, "if rng.random() < 0.9:"),
    _cause(_C, "bits_too_honest", "bits", [0, 1, 1], [0, 0, 1], "flips = "),
    _cause(_C, "two_coins_too_honest", "two_coins", 0, 1, "randbelow(8)", epsilon=1.61),
    _cause(_C, "rate_of_the_data", "rate_with_a_floor", [0, 0, 1], [0, 0, 0], "< share"),
    _cause(_C, "weights_without_half", "weights", *_MOVED, "rng.choice("),
    _cause(_C, "place_by_the_score", "place_by_half_the_score", *_MOVED, "rng.choice("),
    _cause(_C, "coin_for_one_alone", "honest", 1, 0, "if bit == 1"),
    _cause(_C, "poll_too_honest", "poll", [0] * 70, [0] * 69 + [1], "rng.random() < 0.9"),
    _cause(
        *(_C, "rate_next_to_noise", "rate_with_a_floor_next_to_noise"),
        *([0, 0, 1], [0, 0, 0], "< share"),
    ),
    _cause(_C, "weights_for_concentrated", None, *_MOVED, "rng.choice(", rho=0.125),
    _cause(_C, "child_too_honest", "child", 0, 1, "child.random() < 0.9"),
    _cause(
        *(_C, "erases_at_times", "erases_or_flips_by_a_remainder", 0, 1, "rng.random() < 0.3"),
        epsilon=5.0,
        also_correct=(
            f"mechanisms.{_C}:erases_or_flips_by_a_table",
            f"mechanisms.{_C}:erases_or_flips_by_a_large_number",
            f"mechanisms.{_C}:erases_or_flips_by_a_hash",
            f"mechanisms.{_C}:erases_or_flips_by_bytes",
        ),
    ),
    _cause(_C, "bit_of_binomial", "honest", 0, 1, "rng.binomial("),
    _cause(_C, "bit_of_booleans", "honest", 0, 1, "rng.choice("),
    _cause(
        *("noisy_max", "noisy_max_half", "noisy_max"),
        *([0, 0, 1, 2], [0, 1, 1, 2], "_noisy_index("),
    ),
    _cause("local", "rappor_whole_epsilon", "rappor", 0, 1, "_flipped("),
)
_BITS = ([0, 1], [0])
_MODULES = (
    _cause(
        *(_M, "dice_too_honest", "dice", 0, 1),
        *("randint(1, 20) > 1", "randrange(20) > 0", "getrandbits(3) > 0"),
        epsilon=1.2,
    ),
    _cause(_M, "picks_the_truth_too_often", "picks_the_truth", 0, 1, "random.choice("),
    _cause(_M, "picks_by_weights", "picks_by_half_weights", *_MOVED, "random.choices("),
    _cause(
        _M, "permutes_and_flips", "permutes_and_flips_half", *_MOVED, "rng.random() < math.exp(2.0"
    ),
    _cause(
        _M,
        "shuffles_and_flips",
        "shuffles_and_flips_half",
        *_MOVED,
        "random.random() < math.exp(2.0",
    ),
    _cause(_M, "old_normal_half", "old_normal", *_BITS, "np.random.randn(", delta=1e-5),
    _cause(_M, "table_half", "table", *_BITS, "rng.laplace(", "counts + noise"),
    _cause(_M, "quantiles_of_scipy_half", "quantiles_of_scipy", *_BITS, ".rvs(", "0.5 *"),
    _cause(_M, "quantiles_of_random_half", "quantiles_of_scipy", *_BITS, "uniform(", "0.5 *"),
    _cause(_M, "integer_noise_half", "integer_noise", *_BITS, ".rvs("),
    _cause(_M, "geometric_of_scipy_half", "integer_noise", *_BITS, "stats.geom.rvs("),
    _cause(_M, "seeded_state", f"mechanisms.{_R}:not_seeded", *_BITS, "RandomState(7)"),
    _cause(_M, "seeded_numpy", f"mechanisms.{_R}:not_seeded", *_BITS, "seed(11)"),
    _cause(_M, "seeded_random", f"mechanisms.{_A}:deviation", *_BITS, "Random(5)", delta=1e-5),
    _cause(_M, "series_half", "series", *_BITS, "scale=0.5"),
    _cause(_M, "opendp_half", "opendp_whole", *_BITS, "measurement(list"),
    _cause(_M, "opendp_counts_half", "opendp_counts", *_BITS, "noisy = "),
    _cause(_M, "opendp_twice", "opendp_shared", *_BITS, "make_composition("),
    _cause(_M, "opendp_response_too_honest", "opendp_response", 0, 1, "prob=0.9"),
    _cause(_M, "opendp_own_half", "opendp_own", *_BITS, "_own(0.5)"),
    _cause(_M, "pydp_half", "pydp_whole", *_BITS, "add_noise("),
    _cause(_M, "pydp_distribution_half", "pydp_distribution", *_BITS, ".sample("),
    _cause(
        *(_M, "own_function_half", "own_function", *_BITS, "add_noise("),
        primitives=(f"mechanisms.{_M}:add_noise",),
    ),
    _cause(
        *(_M, "ends_at_the_size", "ends_at_ten", *_BITS, "add_noise_within("),
        primitives=(f"mechanisms.{_M}:add_noise_within",),
    ),
    _cause(
        *(_M, "own_method_half", "own_method", *_BITS, ".add("),
        delta=1e-5,
        primitives=(f"mechanisms.{_M}:Noise.add",),
    ),
)
_T, _J, _D = "causes.torch_noise", "causes.jax_noise", "causes.diffprivlib_noise"
# Mechanisms of libraries that are not installed for tests, by the library.
OF_LIBRARIES = {
    "torch": (
        _cause(
            *(_T, "gradient_of_the_batch_clipped", "gradient_of_each_record_clipped"),
            *([[1.0, 2.0, 3.0], [1.0, 1.0, -8.0]], [[1.0, 2.0, 3.0]]),
            *("clip_grad_norm_", "torch.randn("),
            delta=1e-5,
        ),
        _cause(
            *(_T, "step_divided_by_the_count", "step_divided_by_a_constant"),
            *([3.0, 1.0, 2.0], [3.0, 1.0], "torch.normal("),
            delta=1e-5,
        ),
        _cause(
            *(_T, "step_from_random_weights_divided_by_the_count", "step_divided_by_a_constant"),
            *([3.0, 1.0, 2.0], [3.0, 1.0], "torch.normal("),
            delta=1e-5,
        ),
        _cause(_T, "number_half", "number_whole", *_BITS, "torch.randn(", delta=1e-5),
        _cause(_T, "tensor_half", "number_whole", *_BITS, "torch.randn(", delta=1e-5),
        _cause(_T, "array_half", "number_whole", *_BITS, "torch.normal(", delta=1e-5),
        _cause(_T, "with_a_gradient_half", "number_whole", *_BITS, "randn_like(", delta=1e-5),
        _cause(_T, "of_a_generator_half", "number_whole", *_BITS, "torch.randn(", delta=1e-5),
        _cause(_T, "filled_half", "number_whole", *_BITS, "normal_(", delta=1e-5),
        _cause(_T, "columns_half", "number_whole", [1, 1], [1], "torch.randn(", delta=1e-5),
        _cause(_T, "evenly_filled", "number_whole", *_BITS, "uniform_(", delta=0.01),
        _cause(_T, "laplace_half", "laplace_whole", *_BITS, "Laplace(0.0, 0.5)"),
        _cause(_T, "coin_too_honest", "coin", 0, 1, "torch.rand("),
        _cause(_T, "bit_of_bernoulli", "coin", 0, 1, "torch.bernoulli("),
        _cause(_T, "die_too_honest", "coin", 0, 1, "torch.randint("),
        _cause(_T, "weights_without_half", "weights", *_MOVED, "torch.multinomial("),
        _cause(_T, "seeded", "number_whole", *_BITS, "manual_seed(3)", delta=1e-5),
    ),
    "jax": (
        _cause(_J, "normal_half", "normal_whole", *_BITS, "jax.random.normal(", delta=1e-5),
        _cause(_J, "compiled_half", "compiled_whole", *_BITS, "_noised("),
        _cause(_J, "constant_key", "compiled_whole", *_BITS, "jax.random.laplace("),
        _cause(_J, "coin_too_honest", "coin", 0, 1, "jax.random.bernoulli("),
        _cause(_J, "threshold_too_honest", "coin", 0, 1, "jax.random.uniform("),
        _cause(_J, "die_too_honest", "coin", 0, 1, "jax.random.randint("),
    ),
    "diffprivlib": (
        _cause(_D, "half_the_sensitivity", "whole_sensitivity", [1, 1], [1], "randomise("),
        _cause(_D, "truncated_at_the_size", "truncated", [1, 1], [1], "randomise("),
        _cause(_D, "folded_at_the_size", "truncated", [1, 1], [1], "randomise("),
        _cause(_D, "integers_from_the_size", "truncated", [1, 1], [1], "randomise("),
        _cause(_D, "scale_of_the_size", "truncated", [1, 1], [1], "randomise("),
        _cause(_D, "normal_half", "normal_whole", [1, 1], [1], "randomise(", delta=1e-5),
        _cause(_D, "weights_without_half", "weights", *_MOVED, "randomise("),
        _cause(_D, "too_honest", "honest", 0, 1, "randomise("),
        _cause(_D, "category_too_honest", "category", "tea", "coffee", "randomise("),
    ),
}
# Reference mechanisms of the documents, and of what libraries have released.
_FAR = ([0, 0, 0], [0, 0, 1])
_REFERENCE = (
    _cause(
        *("gaussian", "variance_for_deviation", "gaussian", 0.0, 1.0, "rng.normal("),
        epsilon=10.7,
        delta=1e-5,
        params={"mu": 2.0},
    ),
    _cause(
        *("exponential", "common_disease_without_two", "common_disease", *_FAR, "_drawn("),
        params={"diseases": 2},
    ),
    _cause(
        *("exponential", "auction_sensitivity_one", "auction"),
        *([10.0, 1.0], [0.0, 1.0], "_drawn("),
        params={"prices": (1.0, 2.0, 5.0, 10.0)},
    ),
    _cause(
        *("poll", "repeated_poll", "mechanisms.randomized_response:randomized_response"),
        *(0, 1, "return poll("),
        epsilon=math.log(3) + 1e-9,
    ),
    _cause(
        *("noisy_max", "noisy_max_value", None, [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        "rng.laplace(",
    ),
    _cause(
        *("laplace_queries", "column_sums_half", "column_sums"),
        *([[0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]], "_noisy("),
    ),
    _cause(
        *("histogram", "low_threshold", "thresholded"),
        *(["pizza"], ["pizza", "sushi"], "_noisy("),
        delta=0.01,
    ),
    _cause(
        *("local", "kary_randomized_response_printed", "kary_randomized_response"),
        *("coffee", "tea", "_kary_rr("),
    ),
    _cause(
        *("floating_point", "noise_rounded_laplace", "grid_rounded_laplace"),
        *(0.0, 0.0123, "np.round("),
    ),
    _cause(
        *("floating_point", "textbook_laplace", "grid_rounded_laplace"), *(0.0, 1.0, "rng.laplace(")
    ),
    _cause("dependence", "fixed_seed", None, 0.0, 1.0, "default_rng(2_024)"),
    _cause("gallery.laws", "opendp_0_14_1", None, 0, 1, "_happens(", epsilon=1 / 3),
    _cause(
        *("gallery.laws", "pure_ldp_1_1_2", "mechanisms.local:rappor", 1, 2, "rng.random("),
        epsilon=0.5,
        params={"epsilon": 0.5},
    ),
    _cause(
        *("gallery.laws", "diffprivlib_slope", None),
        *([(1.0, 1.0), (2.0, 0.0)], [(1.0, 1.0), (5.0, 0.0)], "/ squares"),
    ),
)
_LINES = {
    "clamps-one-side": ("noisy(", "min(number"),
    "scale-of-all-records": ("noisy(",),
    "empty-is-exact": ("if not len",),
    "variance-of-a-sample": ("noisy(",),
    "weights-of-mean-one": ("noisy(",),
    "bins-of-the-data": ("noisy(",),
    "only-what-was-seen": ("noisy(",),
    "noise-for-one-direction": ("_winner(",),
    "at-least-the-largest": ("min(_threshold", "_above("),
    "ties-have-a-length": ("_median(",),
    "even-for-all": ("noisy(",),
    "bound-read-twice": ("rng.laplace(",),
    "threshold-without-noise": ("rng.laplace(",),
    "noise-not-refreshed": ("noise = rng.laplace(",),
    "budget-ignored": ("noise = rng.laplace(",),
    "width-for-sensitivity": ("noisy(",),
    "overflows": ("noisy(", "np.dot"),
    "squares-unclipped": ("noisy(", "squares ="),
    "raises-for-nan": ("total = sum(round",),
    "mean-for-missing": ("noisy(",),
    "characters-for-bytes": ("noisy(",),
    "noise-for-one-city": ("noisy(",),
    "spelled-after-counting": ("noisy(",),
    "largest-rarely-passes": ("_clamped(dataset, _RARELY",),
    "largest-often-passes": ("_clamped(dataset, _OFTEN",),
    "many-rarely-pass": ("np.where(passes", "passes ="),
}
_NEIGHBOURS = tuple(
    Cause(
        name=one.name,
        broken=one.broken,
        correct=one.correct,
        d1=one.d1,
        d2=one.d2,
        params=one.params,
        epsilon=one.epsilon,
        delta=one.delta,
        lines=_LINES[one.name],
    )
    for one in PLANTED
)
_STEPS = (
    _cause(_S, "weights_of_steps_half", "weights_of_steps", [1, 1], [1], "rng.normal(", rho=0.376),
    _cause(
        *(_S, "sum_of_gradients_clipped", "each_gradient_clipped"),
        [[3.0, 4.0], [-6.0, -8.0]],
        [[3.0, 4.0]],
        *("total = total /", "rng.normal("),
        rho=0.126,
    ),
    _cause(
        *(_S, "momentum_before_noise_half", "momentum_before_noise"),
        *([1, 1], [1], "rng.normal("),
        rho=0.126,
    ),
    _cause(_S, "momentum_half", "momentum", [1, 1], [1], "rng.normal(", rho=0.33),
    _cause(
        *(_S, "noise_of_the_last_step", "noise_of_each_step", [1, 1], [1], "rng.normal("), rho=0.15
    ),
    _cause(
        *(_S, "seed_for_both_layers", "seed_for_each_layer", [1, 1], [1], "default_rng(seed)"),
        rho=0.15,
        also_correct=("mechanisms.causes.steps:one_noise_in_a_sum",),
    ),
)
CAUSES = (*_ADDITIVE, *_STEPS, *_RELEASED, *_CHOICES, *_MODULES, *_REFERENCE, *_NEIGHBOURS)

# A mechanism for each kind of finding (docs/guides/trace.md).
SHOWN = {
    "constant-seed": "seeded",
    "no-noise": "with-the-count",
    "control-flow": "few-are-exact",
    "exception": "raises-for-large",
    "noise-used-twice": "one-noise-for-two",
    "data-dependent-scale": "scale-of-the-largest",
    "data-dependent-parameter": "ends-at-the-size",
    "too-little-noise": "half-the-noise",
    "data-dependent-choice": "place-by-the-score",
    "drawn-for-one-input": "coin-for-one-alone",
    "unused-noise": "noise-forgotten",
    "sum": "noisy-max-value",
}
