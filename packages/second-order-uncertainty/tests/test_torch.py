"""Tensors keep dtype, device and gradient, and agree with numpy."""

import numpy as np
import pytest
import torch

from paperworks.second_order_uncertainty import SecondOrder, decompose, wasserstein
from paperworks.shared.errors import InputError

NAMES = ("total", "aleatoric", "epistemic")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("measure", ["wasserstein", "entropy", "labelwise-entropy", "variance"])
@pytest.mark.parametrize("kind", ["equal", "weighted", "dirichlet"])
def test_agrees_with_numpy(device, measure, kind):
    random = np.random.default_rng(0)
    if kind == "dirichlet":
        values = random.uniform(0.1, 9, size=(40, 5))
        plain = SecondOrder.from_dirichlet(values)
        tensor = SecondOrder.from_dirichlet(
            torch.tensor(values, dtype=torch.float32, device=device)
        )
    else:
        values = random.dirichlet(np.ones(5), size=(40, 7))
        weights = random.random((40, 7)) if kind == "weighted" else None
        plain = SecondOrder.from_samples(values, weights)
        tensor = SecondOrder.from_samples(
            torch.tensor(values, dtype=torch.float32, device=device), weights
        )
    wanted, found = decompose(plain, measure), decompose(tensor, measure)
    for name in NAMES:
        value = getattr(found, name)
        assert value.dtype == torch.float32
        assert value.device.type == device
        np.testing.assert_allclose(value.cpu(), getattr(wanted, name), rtol=1e-6, atol=1e-6)
    if measure == "wasserstein":
        np.testing.assert_allclose(found.minimizer.cpu(), wanted.minimizer, atol=1e-4)


@pytest.mark.parametrize("part", NAMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_agrees_with_finite_differences(part, weighted):
    random = np.random.default_rng(1)
    logits = torch.tensor(random.normal(size=(3, 6, 4)), requires_grad=True)
    weights = random.random((3, 6)) if weighted else None

    def value(x):
        return getattr(wasserstein, part)(SecondOrder.from_logits(x, weights))

    assert torch.autograd.gradcheck(value, (logits,), eps=1e-6, atol=1e-7)


@pytest.mark.parametrize("part", NAMES)
def test_gradient_of_a_dirichlet(part):
    alpha = torch.tensor(
        [[0.5, 2.0, 3.0], [4.0, 1.0, 1.5]], dtype=torch.float64, requires_grad=True
    )

    def value(x):
        return getattr(wasserstein, part)(SecondOrder.from_dirichlet(x))

    assert torch.autograd.gradcheck(value, (alpha,), eps=1e-5, atol=1e-5)


@pytest.mark.parametrize("measure", ["entropy", "labelwise-entropy", "variance"])
def test_gradient_of_the_baselines_at_certainty(measure):
    theta = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]], requires_grad=True)
    decompose(theta, measure).aleatoric.sum().backward()
    assert torch.isfinite(theta.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype):
    theta = torch.softmax(torch.randn(20, 5, 10, generator=torch.Generator().manual_seed(0)), -1)
    found = decompose(theta.to(dtype)).epistemic
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, decompose(theta).epistemic, atol=5e-3)


def test_bad_tensors():
    with pytest.raises(InputError, match=r"theta\[0, 0, :\]: expected probabilities that sum to 1"):
        decompose(torch.full((1, 2, 3), 0.5))
    with pytest.raises(InputError, match=r"logits\[0, 0, 0\]: expected finite numbers"):
        SecondOrder.from_logits(torch.full((1, 2, 3), float("inf")))
    with pytest.raises(InputError, match=r"alpha\[0, 0\]: expected numbers > 0"):
        SecondOrder.from_dirichlet(torch.zeros(1, 3, requires_grad=True))


def test_gradient_of_the_weights():
    theta = torch.tensor(np.random.default_rng(9).dirichlet(np.ones(3), size=(2, 4)))
    weights = torch.tensor([[1.0, 2.0, 3.0, 5.0]] * 2, dtype=torch.float64, requires_grad=True)

    def value(w):
        return wasserstein.epistemic(SecondOrder.from_samples(theta, w)).sum()

    value(weights).backward()
    for m in range(4):
        step = torch.zeros(2, 4, dtype=torch.float64)
        step[0, m] = 1e-6
        with torch.no_grad():
            slope = (value(weights + step) - value(weights - step)) / 2e-6
        assert float(weights.grad[0, m]) == pytest.approx(float(slope), abs=1e-6)
