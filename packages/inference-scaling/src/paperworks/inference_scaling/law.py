"""The parametric law of the loss, L(N, D) = E + A / N^alpha + B / D^beta."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import InputError, expected
from paperworks.shared.files import PathLike, read_json
from paperworks.shared.validation import check_array, check_number

FloatOrArray = Any
"""A float for scalar arguments, a float64 array for array arguments."""


@dataclass(frozen=True)
class ScalingLaw:
    """Loss of a model of N parameters trained on D tokens: E + A / N^alpha + B / D^beta.

    Attributes
    ----------
    E : float or array
        Irreducible loss in nats a token, >= 0.
    A, alpha : float or array
        Scale and exponent of what too few parameters cost, > 0.
    B, beta : float or array
        Scale and exponent of what too few tokens cost, > 0.

    Arrays must broadcast together: a law of arrays is a family of laws, such as bootstrap samples,
    and every method and `plan` broadcasts over it.

    Raises
    ------
    InputError
        Names the coefficient that is not finite or out of range.

    Notes
    -----
    Hoffmann et al. 2022, equation 2; used as it is in section 2 of the paper.
    """

    E: FloatOrArray
    A: FloatOrArray
    B: FloatOrArray
    alpha: FloatOrArray
    beta: FloatOrArray

    COEFFICIENTS: ClassVar[tuple[str, ...]] = ("E", "A", "B", "alpha", "beta")

    def __post_init__(self) -> None:
        for name in self.COEFFICIENTS:
            bound: dict[str, Any] = {"minimum": 0.0} if name == "E" else {"above": 0.0}
            value = getattr(self, name)
            checked = (
                check_array(name, value, dtype=np.float64, **bound)
                if np.ndim(value)
                else float(check_number(name, value, **bound))
            )
            object.__setattr__(self, name, checked)

    @classmethod
    def chinchilla(cls) -> ScalingLaw:
        """Law of Hoffmann et al. 2022 with the exponents' third digit, as in the paper's examples.

        The rounded exponents 0.34 and 0.28 do not reproduce the published numbers.
        """
        return cls(E=1.69, A=406.4, B=410.7, alpha=0.336, beta=0.283)

    @classmethod
    def besiroglu(cls) -> ScalingLaw:
        """Law that Besiroglu et al. 2024 fitted again to the points of the Chinchilla paper."""
        return cls(E=1.8172, A=482.01, B=2085.43, alpha=0.3478, beta=0.3658)

    @classmethod
    def named(cls, name: str) -> ScalingLaw:
        """Return ``"chinchilla"`` or ``"besiroglu"``, or read the JSON file of that name."""
        known = {"chinchilla": cls.chinchilla, "besiroglu": cls.besiroglu}
        if name in known:
            return known[name]()
        return cls.from_json(name)

    @classmethod
    def from_json(cls, path: PathLike) -> ScalingLaw:
        """Read the coefficients of a law file.

        Parameters
        ----------
        path : path_like
            As `Fit.save` writes it, or a plain object of the five coefficients.

        Raises
        ------
        InputError
            Names the file and the coefficient that is missing or no finite number.
        """
        content = read_json(path)
        if not isinstance(content, dict):
            raise expected(str(path), "a JSON object with E, A, B, alpha, beta", content)
        values = content.get("coefficients", content)
        if not isinstance(values, dict):
            raise expected(f"{path}: coefficients", "an object of numbers", values)
        for name in cls.COEFFICIENTS:
            if name not in values:
                raise InputError(f"{path}: {name}: expected a coefficient, found none")
        try:
            return cls(**{name: values[name] for name in cls.COEFFICIENTS})
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, FloatOrArray]:
        """Return the five coefficients by name."""
        return asdict(self)

    def with_coefficients(self, **changes: FloatOrArray) -> ScalingLaw:
        """Return the law with some coefficients changed."""
        return replace(self, **changes)

    def loss(self, params: ArrayLike, tokens: ArrayLike) -> FloatOrArray:
        """Loss in nats a token.

        Parameters
        ----------
        params : array_like
            Parameters N > 0.
        tokens : array_like
            Training tokens D > 0; broadcasts with ``params``.
        """
        n = check_array("params", params, dtype=np.float64, above=0)
        d = check_array("tokens", tokens, dtype=np.float64, above=0)
        value = self.E + _power(self.A, n, -self.alpha) + _power(self.B, d, -self.beta)
        return scalar(value)

    def chinchilla_tokens(self, params: ArrayLike) -> FloatOrArray:
        """Tokens for which ``params`` is the compute-optimal size: equal elasticities of the loss.

        ``D = (beta B N^alpha / (alpha A))^(1 / beta)``.
        """
        n = check_array("params", params, dtype=np.float64, above=0)
        log_ratio = np.log(self.beta * self.B) - np.log(self.alpha * self.A)
        with np.errstate(over="ignore"):  # the caller's checks name what is infinite
            return scalar(np.exp((log_ratio + self.alpha * np.log(n)) / self.beta))

    def loss_of_chinchilla(self, params: ArrayLike) -> FloatOrArray:
        """Loss of the compute-optimal model with this many parameters."""
        return self.loss(params, self.chinchilla_tokens(params))

    def compute_optimal(self, train_flops: ArrayLike) -> tuple[FloatOrArray, FloatOrArray]:
        """Parameters and tokens with the least loss for a training budget C = 6 N D.

        Parameters
        ----------
        train_flops : array_like
            FLOPs > 0.

        Returns
        -------
        params, tokens : float or array
            ``G (C/6)^(beta/(alpha+beta))`` and ``(C/6)^(alpha/(alpha+beta)) / G`` with
            ``G = (alpha A / (beta B))^(1/(alpha+beta))`` (Hoffmann et al. 2022, equation 4).
        """
        flops = check_array("train_flops", train_flops, dtype=np.float64, above=0)
        both = self.alpha + self.beta
        log_g = (np.log(self.alpha * self.A) - np.log(self.beta * self.B)) / both
        log_c = np.log(flops) - np.log(6.0)
        params = np.exp(log_g + log_c * self.beta / both)
        tokens = np.exp(log_c * self.alpha / both - log_g)
        return scalar(params), scalar(tokens)

    def compute_optimal_for_loss(self, loss: ArrayLike) -> tuple[FloatOrArray, FloatOrArray]:
        """Parameters and tokens that reach a loss with the least training compute.

        Parameters
        ----------
        loss : array_like
            Loss > E in nats a token.
        """
        log_gap = np.log(self.reducible(loss))
        both = self.alpha + self.beta
        log_params = (np.log(self.A) + np.log(both / self.beta) - log_gap) / self.alpha
        log_tokens = (np.log(self.B) + np.log(both / self.alpha) - log_gap) / self.beta
        return scalar(np.exp(log_params)), scalar(np.exp(log_tokens))

    def isoloss(self, loss: ArrayLike, params: ArrayLike) -> FloatOrArray:
        """Tokens with which models of a size reach a loss; infinite for sizes that are too small.

        Parameters
        ----------
        loss : array_like
            Loss > E in nats a token.
        params : array_like
            Parameters > 0; broadcasts with ``loss``.
        """
        n = check_array("params", params, dtype=np.float64, above=0)
        left = self.reducible(loss) - _power(self.A, n, -self.alpha)
        return scalar(_inverse(left, self.B, self.beta))

    def isoloss_params(self, loss: ArrayLike, tokens: ArrayLike) -> FloatOrArray:
        """Parameters with which so many tokens reach a loss; infinite for too few tokens."""
        d = check_array("tokens", tokens, dtype=np.float64, above=0)
        left = self.reducible(loss) - _power(self.B, d, -self.beta)
        return scalar(_inverse(left, self.A, self.alpha))

    def reducible(self, loss: ArrayLike) -> np.ndarray:
        """Return ``loss - E``.

        Raises
        ------
        InputError
            Where it is not positive: no model reaches the irreducible loss.
        """
        wanted = check_array("loss", loss, dtype=np.float64)
        gap = wanted - np.asarray(self.E)
        if np.any(gap <= 0):
            where = np.unravel_index(int(np.argmin(gap)), gap.shape)
            found = np.broadcast_to(wanted, gap.shape)[where]
            floor = np.broadcast_to(self.E, gap.shape)[where]
            raise expected(
                "loss", f"a number above the law's irreducible loss E = {floor:.6g}", float(found)
            )
        return gap


def scalar(value: Any) -> FloatOrArray:
    """Return a 0-d array as a Python float and any other array as it is."""
    return float(value) if np.ndim(value) == 0 else value


def _power(scale: FloatOrArray, base: np.ndarray, exponent: FloatOrArray) -> np.ndarray:
    return np.exp(np.log(scale) + exponent * np.log(base))


def _inverse(left: np.ndarray, scale: FloatOrArray, exponent: FloatOrArray) -> np.ndarray:
    """Solve scale x^-exponent = left for x; infinite where nothing is left."""
    reachable = left > 0
    log_left = np.log(np.where(reachable, left, 1.0))
    return np.where(reachable, np.exp((np.log(scale) - log_left) / exponent), np.inf)
