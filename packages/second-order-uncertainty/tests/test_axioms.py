"""The search finds known violations, none of what is proved, and its examples re-verify."""

import numpy as np
import pytest

from paperworks.second_order_uncertainty import (
    Decomposition,
    SecondOrder,
    axioms,
    decompose,
    solve_programmes,
    wasserstein,
)
from paperworks.shared.errors import InputError


def violated(measure, **options):
    found = axioms.check(measure, cases=300, steps=15, seed=1, **options)
    return {(f.criterion, f.part): f.example for f in found if f.violated}


def test_wasserstein():
    examples = violated("wasserstein")
    assert set(examples) == {
        ("A2", "epistemic"),
        ("A3 strict", "total"),
        ("A3 strict", "epistemic"),
        ("A4 weak", "aleatoric"),
        ("A4 strict", "aleatoric"),
    }
    assert not set(examples) & set(axioms.PROOFS)
    for example in examples.values():
        assert example.excess > axioms.TOLERANCE
        assert example.recheck() == pytest.approx(example.excess, abs=1e-9)


def test_other_families():
    assert {("A5", "epistemic"), ("A4 weak", "aleatoric")} <= set(violated("entropy"))
    assert {("A5", "epistemic")} <= set(violated("labelwise-entropy"))
    # The variance: AU grows by |mean - uniform|^2 s (2 - s) under a shift, Var is translation free.
    assert set(violated("variance")) == {("A2", "epistemic"), ("A3 strict", "total")}


def test_the_counter_example_to_the_centre_shift():
    example = axioms.centre_shift_example()
    np.testing.assert_allclose(example.values, (0.18, 0.1781583333), atol=1e-9)
    before, after = example.before, example.after[0]
    np.testing.assert_allclose(before.mean()[0], (0.407, 0.2965, 0.2965), atol=1e-12)
    np.testing.assert_allclose(after.mean()[0], (0.407 / 2 + 1 / 6, *[0.2965 / 2 + 1 / 6] * 2))
    # A translation: the same vector moves every atom.
    moves = after.values - before.values
    np.testing.assert_allclose(moves, np.broadcast_to(moves[:, :1], moves.shape), atol=1e-12)
    solved = [solve_programmes(q).aleatoric[0] for q in (before, after)]
    np.testing.assert_allclose(solved, example.values, atol=1e-9)
    assert example.recheck() == pytest.approx(0.0018416667, abs=1e-9)


def test_a_users_measure_that_breaks_nearly_everything():
    def wrong(q):
        parts = decompose(q)
        return Decomposition(0.1 - parts.total, parts.total + 0.1, parts.aleatoric)

    found = violated(wrong, criteria=["A0", "A1", "A5", "A6"])
    assert {("A0", "total"), ("A1", "epistemic"), ("A5", "epistemic"), ("A6", "aleatoric")} == set(
        found
    )


def test_same_seed_same_examples():
    first, second = (violated("entropy", criteria=["A5"]) for _ in range(2))
    key = ("A5", "epistemic")
    np.testing.assert_array_equal(first[key].before.values, second[key].before.values)


def test_partition_in_a_hundred_thousand_cases():
    # A7 for EU: proved in axioms.PROOFS; here with the partition's minimisers put together.
    random = np.random.default_rng(0)
    for members, classes, cut in ((2, 4, 2), (3, 5, 2), (4, 4, 1), (5, 6, 3)):
        atoms = random.dirichlet(np.full(classes, 0.4), size=(25_000, members))
        first, last = atoms[..., :cut], atoms[..., cut:]
        halves = [
            np.concatenate([part, 1 - part.sum(axis=-1, keepdims=True)], axis=-1).clip(0)
            for part in (first, last)
        ]
        whole = wasserstein.epistemic(SecondOrder.from_samples(atoms))
        parts = [wasserstein.epistemic(SecondOrder.from_samples(h)) for h in halves]
        assert np.all(whole <= parts[0] + parts[1] + 1e-12)


def test_bad_options():
    with pytest.raises(InputError, match="criteria: expected some of A0, A1"):
        axioms.check(criteria=["B1"])
    with pytest.raises(InputError, match="measure: expected one of wasserstein"):
        axioms.check("nothing")
    with pytest.raises(InputError, match="part: expected one of total, aleatoric"):
        axioms.search("A4 weak", "epistemic")
