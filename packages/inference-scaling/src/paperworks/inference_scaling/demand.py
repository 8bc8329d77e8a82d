"""How many tokens a model will read and write over its life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import expected
from paperworks.shared.validation import check_array, check_number

from .law import FloatOrArray, scalar

LMSYS_INPUT_TOKENS = 70.0
LMSYS_OUTPUT_TOKENS = 215.0
DAYS_A_YEAR = 365.25


@dataclass(frozen=True)
class InferenceDemand:
    """Requests over the model's life and the tokens of a request.

    Attributes
    ----------
    requests : float or array
        Number of requests > 0.
    input_tokens, output_tokens : float or array
        Mean tokens read (prefill) and written (decode) a request, >= 0 and not both zero. The
        defaults are the means of the LMSYS chat data that the paper uses.
    discount_factor : float or array
        Value today of one unit of money spent on inference over the horizon, in (0, 1]. It
        multiplies inference cost only, never tokens or FLOPs.

    Raises
    ------
    InputError
        For demands that are negative or zero: without inference the answer is
        `ScalingLaw.compute_optimal_for_loss`.
    """

    requests: FloatOrArray
    input_tokens: FloatOrArray = LMSYS_INPUT_TOKENS
    output_tokens: FloatOrArray = LMSYS_OUTPUT_TOKENS
    discount_factor: FloatOrArray = 1.0

    def __post_init__(self) -> None:
        bounds: dict[str, dict[str, Any]] = {
            "requests": {"above": 0},
            "input_tokens": {"minimum": 0},
            "output_tokens": {"minimum": 0},
            "discount_factor": {"above": 0, "maximum": 1},
        }
        for name, bound in bounds.items():
            checked = check_array(name, getattr(self, name), dtype=np.float64, **bound)
            object.__setattr__(self, name, scalar(checked))
        if np.any(np.asarray(self.input_tokens) + np.asarray(self.output_tokens) <= 0):
            raise expected(
                "input_tokens, output_tokens", "at least one above 0", "a request without tokens"
            )

    @classmethod
    def from_totals(
        cls, *, input_tokens: ArrayLike = 0.0, output_tokens: ArrayLike = 0.0
    ) -> InferenceDemand:
        """Make a demand of all the tokens read and written over the model's life."""
        return cls(requests=1.0, input_tokens=input_tokens, output_tokens=output_tokens)

    @classmethod
    def from_tokens(
        cls,
        tokens: ArrayLike,
        *,
        output_fraction: float = LMSYS_OUTPUT_TOKENS / (LMSYS_INPUT_TOKENS + LMSYS_OUTPUT_TOKENS),
    ) -> InferenceDemand:
        """Make a demand of so many tokens in all.

        Parameters
        ----------
        tokens : array_like
            Input and output tokens together, > 0.
        output_fraction : float
            The written share in [0, 1]; it matters for cost only. The default is the paper's mix.
        """
        total = check_array("tokens", tokens, dtype=np.float64, above=0)
        share = check_number("output_fraction", output_fraction, minimum=0, maximum=1)
        return cls.from_totals(input_tokens=total * (1 - share), output_tokens=total * share)

    @classmethod
    def over_horizon(
        cls,
        requests_per_day: ArrayLike,
        days: float,
        *,
        input_tokens: ArrayLike = LMSYS_INPUT_TOKENS,
        output_tokens: ArrayLike = LMSYS_OUTPUT_TOKENS,
        annual_growth: float = 0.0,
        annual_discount: float = 0.0,
    ) -> InferenceDemand:
        """Make a demand of a daily rate over a horizon (an extension: not in the paper).

        Parameters
        ----------
        requests_per_day : array_like
            Rate on the first day, > 0.
        days : float
            Length of the horizon, > 0.
        input_tokens, output_tokens : array_like
            Tokens a request.
        annual_growth : float
            Relative growth of the rate a year, > -1; 0.5 is half as many again each year.
        annual_discount : float
            Discount rate a year, >= 0, compounded continuously at the equivalent rate.
        """
        rate = check_array("requests_per_day", requests_per_day, dtype=np.float64, above=0)
        days = check_number("days", days, above=0)
        growth = np.log1p(check_number("annual_growth", annual_growth, above=-1)) / DAYS_A_YEAR
        discount = np.log1p(check_number("annual_discount", annual_discount, minimum=0))
        volume = _integral(growth, days)
        worth = _integral(growth - discount / DAYS_A_YEAR, days)
        return cls(rate * volume, input_tokens, output_tokens, worth / volume)

    @property
    def total_input_tokens(self) -> FloatOrArray:
        """Tokens read over the model's life."""
        return self.requests * self.input_tokens

    @property
    def total_output_tokens(self) -> FloatOrArray:
        """Tokens written over the model's life."""
        return self.requests * self.output_tokens

    @property
    def tokens(self) -> FloatOrArray:
        """All tokens over the model's life, the paper's D_inf."""
        return self.requests * (self.input_tokens + self.output_tokens)


def _integral(rate: float, days: float) -> float:
    """Integrate exp(rate t) over t from 0 to days."""
    with np.errstate(over="ignore"):  # the demand's own checks name what is infinite
        return days if rate == 0 else float(np.expm1(rate * days) / rate)
