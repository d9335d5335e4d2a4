"""Noise of torch: its functions, methods that fill a tensor, and distributions; needs torch.

Records are numbers. Adjacency: a record is added or removed; an answer is replaced. Claim: (1,
10⁻⁵)-DP where noise is normal, else 1-DP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

# The normal noise for Δ = 1 at (1, 10⁻⁵) has this standard deviation, rounded up.
_DEVIATION = 3.74
_HALF = _DEVIATION / 2
_own = torch.Generator()


def gradient_of_the_batch_clipped(data: Sequence[Sequence[float]]) -> Any:
    """Broken: clips the gradient of all records together to norm 1. Records have two features and a
    label."""
    weights, rows = torch.nn.Parameter(torch.zeros(2)), torch.tensor(data)
    ((rows[:, :2] @ weights - rows[:, 2]) ** 2).sum().backward()
    torch.nn.utils.clip_grad_norm_([weights], 1.0)
    return weights.grad + _DEVIATION * torch.randn(2)


def gradient_of_each_record_clipped(data: Sequence[Sequence[float]]) -> Any:
    """Correct."""
    total = torch.zeros(2)
    for row in torch.tensor(data):
        weights = torch.nn.Parameter(torch.zeros(2))
        ((row[:2] @ weights - row[2]) ** 2).backward()
        torch.nn.utils.clip_grad_norm_([weights], 1.0)
        total += weights.grad
    return total + _DEVIATION * torch.randn(2)


def _trained(data: Sequence[float], size: int, *, is_zero: bool) -> Any:
    """Make a step of SGD with noise on the sum of clipped gradients, divided by `size`."""
    model = torch.nn.Linear(1, 1)
    parameters = list(model.parameters())
    totals = [torch.zeros_like(tensor) for tensor in parameters]
    if is_zero:
        for tensor in parameters:
            torch.nn.init.zeros_(tensor)
    for row in data:
        model.zero_grad()
        (model(torch.tensor([row])) - 1).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        totals = [total + tensor.grad for total, tensor in zip(totals, parameters, strict=True)]
    for total, tensor in zip(totals, parameters, strict=True):
        tensor.grad = total + torch.normal(0.0, _DEVIATION, total.shape)
        tensor.grad /= size
    torch.optim.SGD(parameters, lr=0.5).step()
    return torch.cat([tensor.detach().flatten() for tensor in parameters])


def step_divided_by_the_count(data: Sequence[float]) -> Any:
    """Broken: divides the noisy gradient by the number of records."""
    return _trained(data, len(data), is_zero=True)


def step_from_random_weights_divided_by_the_count(data: Sequence[float]) -> Any:
    """Broken: the same from random first weights, which the output contains."""
    return _trained(data, len(data), is_zero=False)


def step_divided_by_a_constant(data: Sequence[float]) -> Any:
    """Correct."""
    return _trained(data, 3, is_zero=False)


def number_half(data: Sequence[float]) -> float:
    """Broken: half the standard deviation."""
    return float(len(data) + _HALF * torch.randn(1).item())


def number_whole(data: Sequence[float]) -> float:
    """Correct."""
    return float(len(data) + _DEVIATION * torch.randn(1).item())


def tensor_half(data: Sequence[float]) -> Any:
    """Broken: the same as a tensor."""
    return torch.tensor([float(len(data))]) + _HALF * torch.randn(1)


def array_half(data: Sequence[float]) -> Any:
    """Broken: the same as an array of NumPy."""
    return (torch.tensor([float(len(data))]) - torch.normal(0.0, _HALF, (1,))).numpy()


def with_a_gradient_half(data: Sequence[float]) -> Any:
    """Broken: the same for a tensor with a gradient, in few digits."""
    count = torch.tensor([float(len(data))], requires_grad=True)
    return (count + _HALF * torch.randn_like(count)).to(torch.bfloat16)


def of_a_generator_half(data: Sequence[float]) -> float:
    """Broken: the same with a generator of the module."""
    return float(len(data) + _HALF * torch.randn(1, generator=_own).item())


def filled_half(data: Sequence[float]) -> Any:
    """Broken: fills a tensor with noise, and adds the count in place."""
    noise = torch.empty(1).normal_(0, _HALF)
    noise += float(len(data))
    return noise


def columns_half(data: Sequence[float]) -> Any:
    """Broken: noise on a matrix of counts, which takes another form."""
    counts = torch.tensor([float(sum(number > limit for number in data)) for limit in (0, 9)])
    noisy = counts.reshape(2, 1).add(torch.randn(2, 1), alpha=_HALF)
    return -(noisy.squeeze(1).unsqueeze(0)[0])


def evenly_filled(data: Sequence[float]) -> Any:
    """Broken: uniform noise of width 10; (0, 1/10)-DP."""
    return torch.empty(1).uniform_(-5.0, 5.0) + float(len(data))


def laplace_half(data: Sequence[float]) -> float:
    """Broken: Laplace noise of scale ½."""
    return float(len(data) + torch.distributions.Laplace(0.0, 0.5).sample().item())


def laplace_whole(data: Sequence[float]) -> Any:
    """Correct: of scale 1, on the sum of clipped records."""
    total = torch.tensor([float(number) for number in data]).clamp(0, 1).sum()
    return (total + torch.distributions.Laplace(0.0, 1.0).sample()).clamp(min=0)


def coin_too_honest(answer: int) -> bool:
    """Broken: flips an answer with probability 0.1; ln 9 = 2.2-DP."""
    return bool(answer) ^ bool(torch.rand(()) < 0.1)


def coin(answer: int) -> bool:
    """Correct: with probability 0.3."""
    return bool(answer) ^ bool(torch.rand(()) < 0.3)


def bit_of_bernoulli(answer: int) -> int:
    """Broken: flips an answer with probability 0.1; ln 9 = 2.2-DP."""
    return answer ^ int(torch.bernoulli(torch.tensor(0.1)).item())


def die_too_honest(answer: int) -> int:
    """Broken: lies for one of ten sides; ln 9 = 2.2-DP."""
    return answer if int(torch.randint(10, (1,)).item()) > 0 else 1 - answer


def weights_without_half(scores: Sequence[float]) -> int:
    """Broken: weights e^{2·score}: 4-DP for scores that move by 1 each; a record is replaced."""
    law = torch.exp(2.0 * (torch.tensor(scores) - max(scores)))
    return int(torch.multinomial(law, 1).item())


def weights(scores: Sequence[float]) -> int:
    """Correct: the exponential mechanism."""
    law = torch.exp((torch.tensor(scores) - max(scores)) / 2)
    return int(torch.multinomial(law, 1).item())


def seeded(data: Sequence[float]) -> float:
    """Broken: the noise is the same in every run."""
    torch.manual_seed(3)
    return float(len(data) + _DEVIATION * torch.randn(1).item())
