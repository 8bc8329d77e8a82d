"""The criteria for measures of second-order uncertainty, and a search for violations of them.

`check` looks for counter-examples by random search and hill climbing, for the package's measures or
any of a user's. That none is found proves nothing; for the Wasserstein measures `PROOFS` has the
proofs of what holds:

A0 to A6 as in Sale et al. (ICML 2024) and Wimmer et al. (UAI 2023), A7 as restated in Sale et al.,
"Label-wise aleatoric and epistemic uncertainty quantification" (UAI 2024); the numbering is that of
the restatement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paperworks.shared.errors import InputError
from paperworks.shared.seeding import Seed, generator
from paperworks.shared.validation import check_choice, check_number

from .distances import solve_programmes
from .distributions import SecondOrder, to_numpy
from .measures import Decomposition, Measure, checked, decompose, find_measure

TOLERANCE = 1e-9
"""An excess below this is rounding, not a violation."""

STRICT = 1e-6
"""A change that is smaller than this share of the move counts as no change."""

SHAPES = ((2, 2), (2, 3), (3, 3), (4, 3), (3, 5))
"""Members and classes of the distributions that are tried."""

PROOFS = {
    ("A0", "total"): "1 - max mu is >= 0",
    ("A0", "aleatoric"): "1 - E[max theta] is >= 0",
    ("A0", "epistemic"): "it is a mean of distances",
    ("A1", "epistemic"): "E[d(theta, q)] = 0 means that theta = q almost surely",
    ("A2", "total"): "TU <= 1 - 1/K, reached by every distribution with the uniform mean",
    ("A3 weak", "total"): "TU depends on the mean only, which stays",
    ("A3 weak", "epistemic"): "d(theta, q) is convex in theta (Jensen's inequality for each q)",
    ("A4 weak", "total"): "max_k mu_k falls on the way to the uniform mean",
    ("A4 strict", "total"): "max_k mu_k > 1/K falls in proportion to the step",
    ("A5", "epistemic"): "translate q with Q: the multiplier shows that q stays in the simplex",
    ("A6", "aleatoric"): "max theta = 1 at every vertex",
    ("A7", "total"): "cases: the largest mu_k lies in one part, and outweighs the other's labels",
    ("A7", "aleatoric"): "AU = E[TU of the Dirac measure at theta], so that A7 for TU is enough",
    ("A7", "epistemic"): (
        "join the two minimisers a, b into one; the missing or excess mass s = 1 - a - b costs"
        " |s| / 2, and |s| <= E|theta(Y1) - a| + E|theta(Y2) - b| by the triangle inequality"
    ),
}
"""What holds for the Wasserstein measures, for every second-order distribution, and why."""


@dataclass(frozen=True, eq=False)
class Example:
    """A pair (or triple) of second-order distributions that breaks a criterion.

    Attributes
    ----------
    before : SecondOrder
        One row: the distribution Q.
    after : tuple of SecondOrder
        One row each: what Q is compared with (shifted, spread or marginalised).
    values : tuple of float
        The part's value at ``before`` and at each of ``after``.
    excess : float
        By how much the criterion is missed.
    """

    criterion: str
    part: str
    before: SecondOrder
    after: tuple[SecondOrder, ...]
    values: tuple[float, ...]
    excess: float
    size: float

    def recheck(self, measure: Measure = solve_programmes) -> float:
        """Recompute the excess with another measure.

        Parameters
        ----------
        measure : callable
            By default the linear programmes of the Wasserstein measures' definition.

        Returns
        -------
        float
            Positive where the violation is confirmed.
        """
        values = [_part(_apply(measure, q), self.part) for q in (self.before, *self.after)]
        rule = next(c for c in CRITERIA if c.name == self.criterion)
        return float(rule.excess(values[0], values[1:], np.array([self.size]))[0])


@dataclass(frozen=True, eq=False)
class Finding:
    """What the search found for one criterion and one part of a measure.

    Attributes
    ----------
    criterion, part : str
        Such as "A4 weak" and "aleatoric".
    statement : str
        The criterion in words.
    cases : int
        How many distributions were tried.
    example : Example or None
        The worst violation, None where there was none.
    """

    criterion: str
    part: str
    statement: str
    cases: int
    example: Example | None

    @property
    def violated(self) -> bool:
        """Whether a counter-example was found."""
        return self.example is not None


@dataclass(frozen=True)
class _Genes:
    """A batch of candidates: distributions and what is to be done to them."""

    atoms: np.ndarray  # [n, M, K]
    weights: np.ndarray  # [n, M]
    moves: np.ndarray  # [n, M, K], any reals
    share: np.ndarray  # [n], of the largest possible step

    def take(self, index: np.ndarray) -> _Genes:
        return _Genes(*(getattr(self, name)[index] for name in self.__annotations__))

    def perturbed(self, random: np.random.Generator, scale: float) -> _Genes:
        def noise(values: np.ndarray) -> np.ndarray:
            # A few coordinates at a time: late improvements are along single ones.
            chosen = random.random(values.shape) < 0.4
            return scale * chosen * random.normal(size=values.shape)

        atoms = np.abs(self.atoms + noise(self.atoms)) + 1e-12
        weights = np.abs(self.weights + noise(self.weights)) + 1e-3
        return _Genes(
            atoms / atoms.sum(axis=-1, keepdims=True),
            weights / weights.sum(axis=-1, keepdims=True),
            self.moves + 3 * noise(self.moves),
            np.clip(self.share + noise(self.share), 0.05, 1.0),
        )

    def rounded(self) -> _Genes:
        def whole(values: np.ndarray) -> np.ndarray:
            values = np.round(values, 3)
            top = values.argmax(axis=-1, keepdims=True)
            rest = 1 - values.sum(axis=-1, keepdims=True)
            np.put_along_axis(values, top, np.take_along_axis(values, top, -1) + rest, -1)
            return values

        return _Genes(
            whole(self.atoms), whole(self.weights), np.round(self.moves, 2), np.round(self.share, 2)
        )


@dataclass(frozen=True)
class _Pairs:
    before: SecondOrder
    after: tuple[SecondOrder, ...]
    size: np.ndarray


Construct = Callable[[_Genes], _Pairs]
Excess = Callable[[np.ndarray, Sequence[np.ndarray], np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Criterion:
    """A criterion: how a case is made, and by how much given values miss it.

    Attributes
    ----------
    name, statement : str
        Number and words.
    parts : tuple of str
        The parts of a measure that it speaks of.
    """

    name: str
    statement: str
    parts: tuple[str, ...]
    construct: Construct
    excess: Excess


def check(
    measure: str | Measure = "wasserstein",
    *,
    cases: int = 1000,
    steps: int = 40,
    criteria: Sequence[str] | None = None,
    seed: Seed = 0,
) -> list[Finding]:
    """Search for violations of the criteria.

    Parameters
    ----------
    measure : str or callable
        A name that `decompose` knows, or what maps a `SecondOrder` to a `Decomposition`.
    cases : int
        Random distributions a criterion and part.
    steps : int
        Steps of hill climbing from the best of them; about 30 candidates climb at once.
    criteria : sequence of str, optional
        Such as ``["A4", "A5"]``; all by default.
    seed : int, SeedSequence, Generator or None
        The same seed finds the same examples.

    Returns
    -------
    list of Finding
        One for each criterion and part. Counter-examples have coordinates of three digits where
        rounding leaves the violation in place.

    Raises
    ------
    InputError
        For an unknown measure or criterion.
    """
    known = sorted({c.name.split()[0] for c in CRITERIA})
    for name in criteria or ():
        if name not in known:
            raise InputError(f"criteria: expected some of {', '.join(known)}, found {name!r}")
    random = generator(seed)
    return [
        search(criterion.name, part, measure, cases=cases, steps=steps, seed=random)
        for criterion in CRITERIA
        if not criteria or criterion.name.split()[0] in criteria
        for part in criterion.parts
    ]


def search(
    criterion: str,
    part: str,
    measure: str | Measure = "wasserstein",
    *,
    cases: int = 1000,
    steps: int = 40,
    seed: Seed = 0,
) -> Finding:
    """Search for violations of one criterion by one part of a measure.

    Parameters
    ----------
    criterion, part : str
        Such as "A4 weak" and "aleatoric"; see `CRITERIA`.
    measure, cases, steps, seed
        As for `check`.

    Returns
    -------
    Finding
        With the worst counter-example.

    Raises
    ------
    InputError
        For an unknown measure, criterion or part.
    """
    compute = find_measure(measure)
    cases = check_number("cases", cases, integer=True, minimum=1)
    steps = check_number("steps", steps, integer=True, minimum=0)
    rules = {rule.name: rule for rule in CRITERIA}
    rule = rules[check_choice("criterion", criterion, rules)]
    check_choice("part", part, rule.parts)
    return _search(compute, rule, part, cases, steps, generator(seed))


def centre_shift_example() -> Example:
    """Three atoms whose shift to the centre lowers the aleatoric uncertainty (A4 fails).

    Returns
    -------
    Example
        The shift takes the mean half of the way to the uniform distribution, and the mean of the
        largest probability rises: two atoms gain in their largest entry what only one loses.
    """
    atoms = np.array([[[0.89, 0.055, 0.055], [0.2, 0.79, 0.01], [0.2, 0.01, 0.79]]])
    weights = np.array([[0.3, 0.35, 0.35]])
    rule = next(c for c in CRITERIA if c.name == "A4 weak")
    mean = weights @ atoms
    before = SecondOrder.from_samples(atoms, weights)
    after = SecondOrder.from_samples(atoms + 0.5 * (1 / 3 - mean), weights)
    values = [decompose(q).aleatoric for q in (before, after)]
    size = np.abs(mean - 1 / 3).sum(axis=(1, 2)) / 4
    excess = float(rule.excess(values[0], values[1:], size)[0])
    told = tuple(float(v[0]) for v in values)
    return Example("A4 weak", "aleatoric", before, (after,), told, excess, float(size[0]))


def _search(
    measure: Measure,
    criterion: Criterion,
    part: str,
    cases: int,
    steps: int,
    random: np.random.Generator,
) -> Finding:
    tried, best, best_excess = 0, None, TOLERANCE
    for members, classes in SHAPES:
        genes = _draw(random, -(-cases // len(SHAPES)), members, classes)
        excess = _excess(measure, criterion, part, genes)
        chosen = np.argsort(-excess)[:30]
        genes, excess = genes.take(chosen), excess[chosen]
        tried += -(-cases // len(SHAPES))
        for step in range(steps):
            scale = 0.3 * 0.02 ** (step / max(1, steps - 1))
            moved = genes.perturbed(random, scale)
            found = _excess(measure, criterion, part, moved)
            tried += len(found)
            better = found > excess
            excess = np.where(better, found, excess)
            genes = _Genes(
                *(
                    np.where(better.reshape(-1, *[1] * (old.ndim - 1)), new, old)
                    for old, new in zip(_fields(genes), _fields(moved), strict=True)
                )
            )
        top = int(np.argmax(excess))
        if excess[top] > best_excess:
            best, best_excess = genes.take(np.array([top])), float(excess[top])
    example = None if best is None else _example(measure, criterion, part, best)
    return Finding(criterion.name, part, criterion.statement, tried, example)


def _fields(genes: _Genes) -> tuple[np.ndarray, ...]:
    return genes.atoms, genes.weights, genes.moves, genes.share


def _example(measure: Measure, criterion: Criterion, part: str, genes: _Genes) -> Example:
    rounded = genes.rounded()
    if rounded.atoms.min() >= 0 and rounded.weights.min() > 0:
        excess = _excess(measure, criterion, part, rounded)
        genes = rounded if excess[0] > TOLERANCE else genes
    pairs = criterion.construct(genes)
    values = [_part(_apply(measure, q), part) for q in (pairs.before, *pairs.after)]
    excess = criterion.excess(values[0], values[1:], pairs.size)
    told = tuple(float(v[0]) for v in values)
    size = float(pairs.size[0])
    return Example(criterion.name, part, pairs.before, pairs.after, told, float(excess[0]), size)


def _draw(random: np.random.Generator, n: int, members: int, classes: int) -> _Genes:
    concentration = 10 ** random.uniform(-1, 0.7, size=(n, 1, 1))
    atoms = random.standard_gamma(concentration, size=(n, members, classes)) + 1e-9
    return _Genes(
        atoms / atoms.sum(axis=-1, keepdims=True),
        random.dirichlet(np.full(members, 3.0), size=n),
        random.normal(size=(n, members, classes)),
        random.uniform(0.05, 1, size=n),
    )


def _excess(measure: Measure, criterion: Criterion, part: str, genes: _Genes) -> np.ndarray:
    pairs = criterion.construct(genes)
    values = [_part(_apply(measure, q), part) for q in (pairs.before, *pairs.after)]
    excess = criterion.excess(values[0], values[1:], pairs.size)
    return np.where(np.isnan(excess), -np.inf, excess)


def _apply(measure: Measure, q: SecondOrder) -> Decomposition:
    try:
        parts = measure(q)
    except InputError:
        if q.kind != "dirichlet":
            raise
        # A measure of finite support only: twenty thousand draws stand for the distribution.
        exact = measure is solve_programmes
        parts = decompose(q) if exact else measure(q.sample(20_000, seed=0))
    return checked(parts, len(q))


def _part(parts: Decomposition, part: str) -> np.ndarray:
    return to_numpy(getattr(parts, part)).astype(np.float64)


def _finite(atoms: np.ndarray, weights: np.ndarray) -> SecondOrder:
    atoms = np.clip(atoms, 0, None)
    return SecondOrder("samples", atoms / atoms.sum(axis=-1, keepdims=True), weights)


def _largest_step(atoms: np.ndarray, move: np.ndarray) -> np.ndarray:
    """Largest s with atoms + s move >= 0, over all but the first axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(move < 0, atoms / -move, np.inf)
    return room.min(axis=tuple(range(1, room.ndim)))


def _alone(genes: _Genes) -> _Pairs:
    return _Pairs(_finite(genes.atoms, genes.weights), (), np.zeros(len(genes.share)))


def _and_dirac(genes: _Genes) -> _Pairs:
    mean = np.einsum("nm,nmk->nk", genes.weights, genes.atoms)
    distance = np.abs(genes.atoms - mean[:, None]).sum(axis=-1) / 2
    size = np.einsum("nm,nm->n", genes.weights, distance)
    dirac = np.broadcast_to(genes.atoms[:, :1], genes.atoms.shape)
    return _Pairs(_finite(genes.atoms, genes.weights), (_finite(dirac, genes.weights),), size)


def _and_uniform(genes: _Genes) -> _Pairs:
    uniform = SecondOrder.from_dirichlet(np.ones((1, genes.atoms.shape[-1])))
    return _Pairs(_finite(genes.atoms, genes.weights), (uniform,), np.zeros(len(genes.share)))


def _spread(genes: _Genes) -> _Pairs:
    """Each atom splits into two halves that move apart by the same vector."""
    move = genes.moves - genes.moves.mean(axis=-1, keepdims=True)
    n, members, classes = move.shape
    flat = genes.atoms.reshape(-1, classes), move.reshape(-1, classes)
    room = np.minimum(_largest_step(*flat), _largest_step(flat[0], -flat[1]))
    room = np.minimum(room, 1.0).reshape(n, members, 1)
    move = move * room * genes.share[:, None, None]
    after = np.concatenate([genes.atoms + move, genes.atoms - move], axis=1)
    halves = np.concatenate([genes.weights, genes.weights], axis=1) / 2
    size = np.einsum("nm,nmk->n", genes.weights, np.abs(move)) / 2
    return _Pairs(_finite(genes.atoms, genes.weights), (_finite(after, halves),), size)


def _centred(genes: _Genes) -> _Pairs:
    mean = np.einsum("nm,nmk->nk", genes.weights, genes.atoms)
    move = (1 / mean.shape[-1] - mean)[:, None]
    step = genes.share * np.minimum(
        1, _largest_step(genes.atoms, np.broadcast_to(move, genes.atoms.shape))
    )
    return _shifted(genes, step[:, None, None] * move)


def _located(genes: _Genes) -> _Pairs:
    move = genes.moves[:, :1] - genes.moves[:, :1].mean(axis=-1, keepdims=True)
    step = genes.share * np.minimum(
        1, _largest_step(genes.atoms, np.broadcast_to(move, genes.atoms.shape))
    )
    return _shifted(genes, step[:, None, None] * move)


def _shifted(genes: _Genes, move: np.ndarray) -> _Pairs:
    after = _finite(genes.atoms + move, genes.weights)
    return _Pairs(_finite(genes.atoms, genes.weights), (after,), np.abs(move).sum(axis=(1, 2)) / 2)


def _at_vertices(genes: _Genes) -> _Pairs:
    vertices = np.eye(genes.atoms.shape[-1])[genes.atoms.argmax(axis=-1)]
    return _Pairs(_finite(vertices, genes.weights), (), np.zeros(len(genes.share)))


def _parted(genes: _Genes) -> _Pairs:
    """Marginalise to the first labels and to the last; the others become one label."""
    before = _finite(genes.atoms, genes.weights)
    atoms = before.values
    cut = atoms.shape[-1] // 2
    first = np.concatenate(
        [atoms[..., :cut], atoms[..., cut:].sum(axis=-1, keepdims=True)], axis=-1
    )
    last = np.concatenate([atoms[..., cut:], atoms[..., :cut].sum(axis=-1, keepdims=True)], axis=-1)
    after = _finite(first, genes.weights), _finite(last, genes.weights)
    return _Pairs(before, after, np.zeros(len(genes.share)))


def _falls(before: np.ndarray, after: Sequence[np.ndarray], size: np.ndarray) -> np.ndarray:
    return before - after[0]


def _does_not_rise(before: np.ndarray, after: Sequence[np.ndarray], size: np.ndarray) -> np.ndarray:
    return STRICT * size - (after[0] - before)


CRITERIA = (
    Criterion(
        "A0",
        "is not negative",
        ("total", "aleatoric", "epistemic"),
        _alone,
        lambda before, after, size: -before,
    ),
    Criterion(
        "A1",
        "is 0 for a Dirac measure and only there",
        ("epistemic",),
        _and_dirac,
        lambda before, after, size: np.maximum(np.abs(after[0]), STRICT * size - before),
    ),
    Criterion(
        "A2",
        "is largest for the uniform distribution on the simplex",
        ("total", "epistemic"),
        _and_uniform,
        lambda before, after, size: before - after[0],
    ),
    Criterion(
        "A3 weak",
        "does not fall when the distribution is spread with its mean kept",
        ("total", "epistemic"),
        _spread,
        _falls,
    ),
    Criterion(
        "A3 strict",
        "rises when the distribution is spread with its mean kept",
        ("total", "epistemic"),
        _spread,
        _does_not_rise,
    ),
    Criterion(
        "A4 weak",
        "does not fall when the distribution is translated towards the uniform mean",
        ("total", "aleatoric"),
        _centred,
        _falls,
    ),
    Criterion(
        "A4 strict",
        "rises when the distribution is translated towards the uniform mean",
        ("total", "aleatoric"),
        _centred,
        _does_not_rise,
    ),
    Criterion(
        "A5",
        "does not change when the distribution is translated",
        ("epistemic",),
        _located,
        lambda before, after, size: np.abs(before - after[0]),
    ),
    Criterion(
        "A6",
        "is 0 for a mixture of Dirac measures on vertices",
        ("aleatoric",),
        _at_vertices,
        lambda before, after, size: np.abs(before),
    ),
    Criterion(
        "A7",
        "is at most the sum over the two halves of a partition of the labels",
        ("total", "aleatoric", "epistemic"),
        _parted,
        lambda before, after, size: before - after[0] - after[1],
    ),
)
"""The criteria in the order in which `check` reports them."""
