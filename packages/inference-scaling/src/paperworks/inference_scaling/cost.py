"""What training and serving cost on real hardware, and the plan that costs least.

Section 3 of the paper: a useful FLOP costs ``hour price / (3600 x peak FLOP/s x utilisation)``, and
training, reading a prompt (prefill) and writing an answer (decode) differ in utilisation and may
differ in number format and hardware. The sum keeps the form of the FLOP problem with the demand
replaced by `Prices.equivalent_tokens`, so one solver serves both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import InputError, expected
from paperworks.shared.files import PathLike
from paperworks.shared.validation import check_array, check_choice, check_number

from .demand import InferenceDemand
from .law import FloatOrArray, ScalingLaw, scalar
from .optimum import constrained_allocation, first_order_residual, optimal_allocation

BYTES_A_PARAMETER = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
}


@dataclass(frozen=True)
class Hardware:
    """One accelerator.

    Attributes
    ----------
    name : str
        As in the table.
    peak_flops : mapping of str to float
        Dense peak in FLOP/s (operations/s for integers) by number format.
    memory_bytes : float
        Memory of one device.
    bandwidth_bytes_per_s : float
        Memory bandwidth of one device.
    source, date : str
        Where the figures come from.
    """

    name: str
    peak_flops: Mapping[str, float]
    memory_bytes: float
    bandwidth_bytes_per_s: float
    source: str = ""
    date: str = ""

    @classmethod
    def table(cls, path: PathLike | None = None) -> dict[str, Hardware]:
        """Return the known hardware by name and alias.

        Parameters
        ----------
        path : path_like, optional
            A TOML file in the form of the package's ``hardware.toml``, which is the default.
        """
        source = (
            files("paperworks.inference_scaling") / "hardware.toml" if path is None else Path(path)
        )
        try:
            content = tomllib.loads(source.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: expected TOML, found: {error}") from None
        known: dict[str, Hardware] = {}
        for name, entry in content.items():
            hardware = cls._from_entry(name, entry, str(path or "hardware.toml"))
            aliases = entry.get("aliases", [])
            if not isinstance(aliases, list) or not all(isinstance(a, str) for a in aliases):
                raise expected(f"{path}: {name}.aliases", "a list of names", aliases)
            for word in (name, *aliases):
                if word in known:
                    raise expected(f"{path}: {name}", "a name of its own", f"{word} a second time")
                known[word] = hardware
        return known

    @classmethod
    def named(cls, name: str, *, table: PathLike | None = None) -> Hardware:
        """Look hardware up by name or alias.

        Raises
        ------
        InputError
            For an unknown name; the message lists the known ones.
        """
        known = cls.table(table)
        return known[check_choice("hardware", name, sorted(known))]

    @classmethod
    def _from_entry(cls, name: str, entry: Any, path: str) -> Hardware:
        where = f"{path}: {name}"
        if not isinstance(entry, dict) or not isinstance(entry.get("peak"), dict):
            raise expected(where, "a table with peak, memory_bytes, bandwidth_bytes_per_s", entry)
        peak = {
            dtype: check_number(f"{where}: peak.{dtype}", value, above=0)
            for dtype, value in entry["peak"].items()
        }
        numbers = {
            key: check_number(f"{where}: {key}", entry.get(key), above=0)
            for key in ("memory_bytes", "bandwidth_bytes_per_s")
        }
        told = {key: str(entry.get(key, "")) for key in ("source", "date")}
        return cls(name, peak, **numbers, **told)

    def peak(self, dtype: str) -> float:
        """Peak FLOP/s in a number format; the error lists the formats that there are."""
        return self.peak_flops[check_choice(f"dtype on {self.name}", dtype, self.peak_flops)]


@dataclass(frozen=True)
class Utilization:
    """Share of the peak that is used (MFU), each in (0, 1].

    Attributes
    ----------
    train, prefill, decode : float
        In training, in reading input tokens, in writing output tokens. The defaults are the
        paper's: 50 %, 50 %, 1 %.
    """

    train: float = 0.5
    prefill: float = 0.5
    decode: float = 0.01

    def __post_init__(self) -> None:
        for name in ("train", "prefill", "decode"):
            check_number(f"{name} utilization", getattr(self, name), above=0, maximum=1)


@dataclass(frozen=True)
class Prices:
    """Hourly prices and speeds, from which the cost of a plan follows.

    Attributes
    ----------
    train_hour, inference_hour : float
        Price of an accelerator-hour in ``unit``. 1 for both gives costs in accelerator-hours: no
        price in money is built in.
    train_peak_flops, inference_peak_flops : float
        Peak FLOP/s in the number formats of training and of serving.
    utilization : Utilization
        How much of the peaks is used.
    unit : str
        Of the hourly prices and so of the costs.
    """

    train_peak_flops: float
    inference_peak_flops: float
    train_hour: float = 1.0
    inference_hour: float = 1.0
    utilization: Utilization = field(default_factory=Utilization)
    unit: str = "accelerator-hours"

    def __post_init__(self) -> None:
        for name in ("train_hour", "inference_hour", "train_peak_flops", "inference_peak_flops"):
            check_number(name, getattr(self, name), above=0)

    @classmethod
    def on(
        cls,
        hardware: Hardware,
        inference_hardware: Hardware | None = None,
        *,
        train_dtype: str = "bf16",
        inference_dtype: str = "bf16",
        train_hour: float | None = None,
        inference_hour: float | None = None,
        utilization: Utilization | None = None,
        unit: str | None = None,
    ) -> Prices:
        """Combine hardware, number formats and hourly prices.

        Parameters
        ----------
        hardware, inference_hardware : Hardware
            For training and for serving (the same by default).
        train_dtype, inference_dtype : str
            Formats of the table, such as ``"bf16"`` and ``"int8"``.
        train_hour, inference_hour : float, optional
            Prices of an accelerator-hour; serving on the same hardware costs the same by default.
        utilization : Utilization, optional
            The paper's by default.
        unit : str, optional
            ``"dollars"`` where a price is given and ``"accelerator-hours"`` where none is.
        """
        serving = inference_hardware or hardware
        if train_hour is None and inference_hour is not None:
            raise expected("train_hour", "a price, as inference has one", "no price")
        if train_hour is not None and inference_hour is None and serving.name != hardware.name:
            raise expected("inference_hour", f"a price of {serving.name}", "no price")
        priced = train_hour is not None
        return cls(
            train_peak_flops=hardware.peak(train_dtype),
            inference_peak_flops=serving.peak(inference_dtype),
            train_hour=1.0 if train_hour is None else train_hour,
            inference_hour=(train_hour if inference_hour is None else inference_hour) or 1.0,
            utilization=utilization or Utilization(),
            unit=unit or ("dollars" if priced else "accelerator-hours"),
        )

    @property
    def train_per_flop(self) -> float:
        """Price of one useful training FLOP."""
        return self.train_hour / (3600 * self.train_peak_flops * self.utilization.train)

    def inference_per_param(self, demand: InferenceDemand) -> FloatOrArray:
        """Price of serving the demand, per parameter of the model (2 FLOPs a token)."""
        used = self.utilization
        effective = demand.total_input_tokens / used.prefill
        effective = effective + demand.total_output_tokens / used.decode
        per_flop = self.inference_hour / (3600 * self.inference_peak_flops)
        return 2 * per_flop * effective * demand.discount_factor

    def equivalent_tokens(self, demand: InferenceDemand) -> FloatOrArray:
        """Inference tokens that would weigh as much if a served FLOP cost as a training FLOP.

        ``D_eq = 3 x (serving price per parameter) / (price of a 6-FLOP training token)``.
        """
        return 3 * self.inference_per_param(demand) / (6 * self.train_per_flop)


@dataclass(frozen=True)
class Allocation:
    """A model size and a token count with what they take.

    Attributes
    ----------
    params, tokens : float or array
        Parameters and training tokens.
    train_flops, inference_flops : float or array
        6 N D and 2 N D_inf.
    train_cost, inference_cost : float or array
        In the plan's ``cost_unit``.
    """

    params: FloatOrArray
    tokens: FloatOrArray
    train_flops: FloatOrArray
    inference_flops: FloatOrArray
    train_cost: FloatOrArray
    inference_cost: FloatOrArray

    @property
    def total_flops(self) -> FloatOrArray:
        """FLOPs over the model's life."""
        return self.train_flops + self.inference_flops

    @property
    def cost(self) -> FloatOrArray:
        """Cost over the model's life."""
        return self.train_cost + self.inference_cost

    @property
    def tokens_per_param(self) -> FloatOrArray:
        """Training tokens per parameter."""
        return self.tokens / self.params


@dataclass(frozen=True)
class Plan(Allocation):
    """The allocation of least cost, beside the Chinchilla-optimal one of the same loss.

    Attributes
    ----------
    loss : float or array
        The loss that both reach.
    inference_tokens : float or array
        The demand.
    cost_unit : str
        ``"FLOPs"`` without hardware.
    baseline : Allocation
        Chinchilla-optimal for the same loss, serving the same demand.
    first_order_residual : float or array
        See `optimum.first_order_residual`; zero unless a constraint binds.
    constraint_prices : mapping of str to float or array
        By how much each constraint alone, and all together, raise the cost, relative to the free
        optimum (0.03 is 3 % more).
    """

    loss: FloatOrArray
    inference_tokens: FloatOrArray
    cost_unit: str
    baseline: Allocation
    first_order_residual: FloatOrArray
    constraint_prices: Mapping[str, FloatOrArray]

    @property
    def flop_saving(self) -> FloatOrArray:
        """Share of the baseline's FLOPs that is saved."""
        return 1 - self.total_flops / self.baseline.total_flops

    @property
    def cost_saving(self) -> FloatOrArray:
        """Share of the baseline's cost that is saved."""
        return 1 - self.cost / self.baseline.cost

    @property
    def savings(self) -> dict[str, FloatOrArray]:
        """What is saved against the baseline, absolute and relative."""
        return {
            "flops": self.baseline.total_flops - self.total_flops,
            "cost": self.baseline.cost - self.cost,
            "flop_share": self.flop_saving,
            "cost_share": self.cost_saving,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat dict a plan, for tables and JSON."""
        columns = {
            "loss": self.loss,
            "inference_tokens": self.inference_tokens,
            **_columns(self, ""),
            "flop_saving": self.flop_saving,
            "cost_saving": self.cost_saving,
            **_columns(self.baseline, "baseline_"),
            "first_order_residual": self.first_order_residual,
            **{f"price_of_{name}": value for name, value in self.constraint_prices.items()},
        }
        arrays = np.broadcast_arrays(*columns.values())
        lists = [array.reshape(-1).tolist() for array in arrays]
        return [
            dict(zip(columns, values, strict=True)) | {"cost_unit": self.cost_unit}
            for values in zip(*lists, strict=True)
        ]


def plan(
    law: ScalingLaw,
    loss: ArrayLike,
    demand: InferenceDemand,
    *,
    hardware: Hardware | str | None = None,
    inference_hardware: Hardware | str | None = None,
    train_dtype: str = "bf16",
    inference_dtype: str = "bf16",
    train_hour: float | None = None,
    inference_hour: float | None = None,
    utilization: Utilization | None = None,
    prices: Prices | None = None,
    max_params: ArrayLike | None = None,
    max_memory_bytes: ArrayLike | None = None,
    max_seconds_per_token: ArrayLike | None = None,
    unique_tokens: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
) -> Plan:
    """Find the parameters and training tokens of least cost for a loss and a demand.

    Parameters
    ----------
    law : ScalingLaw
        Of floats, or of arrays for a family of laws.
    loss : array_like
        Loss > E in nats a token, such as ``law.loss_of_chinchilla(30e9)``.
    demand : InferenceDemand
        Broadcasts with ``loss``.
    hardware, inference_hardware : Hardware or str, optional
        For training and for serving. Without any, FLOPs are what is minimised (section 2 of the
        paper).
    train_dtype, inference_dtype : str
        Number formats in training and in serving; ``"int8"`` serves a quantised model.
    train_hour, inference_hour : float, optional
        Prices of an accelerator-hour. Only their ratio moves the optimum.
    utilization : Utilization, optional
        The paper's by default.
    prices : Prices, optional
        Hourly prices, peaks and utilization in one, instead of the above. Hardware beside it
        only bounds the latency.
    max_params : array_like, optional
        Most parameters.
    max_memory_bytes : array_like, optional
        Memory for the weights in ``inference_dtype``.
    max_seconds_per_token : array_like, optional
        Latency of decoding one sequence, bounded below by reading all weights once a token from
        the memory of one serving device.
    unique_tokens : array_like, optional
        Most training tokens.
    sizes : array_like, shape (k,), optional
        The parameter counts that can be built.

    Returns
    -------
    Plan
        Of floats, or of arrays of the broadcast shape.

    Raises
    ------
    InputError
        For an infeasible loss or constraint, unknown hardware or format, or a price or limit that
        needs hardware where none is given.
    """
    train, serve = _hardware(hardware), _hardware(inference_hardware)
    priced = train_hour is not None or inference_hour is not None or utilization is not None
    if prices is not None and priced:
        wanted = "no train_hour, inference_hour or utilization beside it"
        raise expected("prices", wanted, "one of them")
    if prices is None and train is not None:
        prices = Prices.on(
            train,
            serve,
            train_dtype=train_dtype,
            inference_dtype=inference_dtype,
            train_hour=train_hour,
            inference_hour=inference_hour,
            utilization=utilization,
        )
    elif prices is None and (priced or serve is not None):
        raise expected("hardware", "hardware to apply prices and utilization to", "no hardware")
    equivalent = demand.tokens if prices is None else prices.equivalent_tokens(demand)
    limits = _limits(
        serve or train,
        inference_dtype,
        max_params=max_params,
        max_memory_bytes=max_memory_bytes,
        max_seconds_per_token=max_seconds_per_token,
        unique_tokens=unique_tokens,
        sizes=sizes,
    )
    free = optimal_allocation(law, loss, equivalent)
    params, tokens = free
    constraint_prices: dict[str, FloatOrArray] = {}
    if limits:
        least = _objective(*free, equivalent)
        for name, limit in limits.items():
            alone = constrained_allocation(law, loss, equivalent, **limit)
            constraint_prices[name] = _objective(*alone, equivalent) / least - 1
        params, tokens = constrained_allocation(law, loss, equivalent, **_joined(limits))
        constraint_prices["all"] = _objective(params, tokens, equivalent) / least - 1
    baseline = law.compute_optimal_for_loss(loss)
    return Plan(
        *_spent(params, tokens, demand, prices),
        loss=scalar(np.asarray(loss, dtype=np.float64)),
        inference_tokens=demand.tokens,
        cost_unit="FLOPs" if prices is None else prices.unit,
        baseline=Allocation(*_spent(*baseline, demand, prices)),
        first_order_residual=first_order_residual(law, params, tokens, equivalent),
        constraint_prices=constraint_prices,
    )


def _hardware(hardware: Hardware | str | None) -> Hardware | None:
    return Hardware.named(hardware) if isinstance(hardware, str) else hardware


def _objective(params: Any, tokens: Any, equivalent: Any) -> Any:
    return params * (tokens + equivalent / 3)


def _spent(
    params: FloatOrArray, tokens: FloatOrArray, demand: InferenceDemand, prices: Prices | None
) -> tuple[FloatOrArray, ...]:
    train_flops = 6 * params * tokens
    inference_flops = 2 * params * demand.tokens
    if prices is None:
        return params, tokens, train_flops, inference_flops, train_flops, inference_flops
    train_cost = train_flops * prices.train_per_flop
    inference_cost = params * prices.inference_per_param(demand)
    return params, tokens, train_flops, inference_flops, train_cost, inference_cost


def _limits(
    serving: Hardware | None,
    inference_dtype: str,
    *,
    max_params: ArrayLike | None,
    max_memory_bytes: ArrayLike | None,
    max_seconds_per_token: ArrayLike | None,
    unique_tokens: ArrayLike | None,
    sizes: ArrayLike | None,
) -> dict[str, dict[str, Any]]:
    """Turn the user's constraints into bounds for `constrained_allocation`, by name."""
    limits: dict[str, dict[str, Any]] = {}
    if max_params is not None:
        limits["max_params"] = {"max_params": check_array("max_params", max_params, above=0)}
    if max_memory_bytes is not None:
        memory = check_array("max_memory_bytes", max_memory_bytes, dtype=np.float64, above=0)
        limits["max_memory_bytes"] = {"max_params": memory / _bytes(inference_dtype)}
    if max_seconds_per_token is not None:
        name = "max_seconds_per_token"
        seconds = check_array(name, max_seconds_per_token, dtype=np.float64, above=0)
        if serving is None:
            raise expected("hardware", f"hardware to apply {name} to", "no hardware")
        read = seconds * serving.bandwidth_bytes_per_s
        limits[name] = {"max_params": read / _bytes(inference_dtype)}
    if unique_tokens is not None:
        tokens = check_array("unique_tokens", unique_tokens, dtype=np.float64, above=0)
        limits["unique_tokens"] = {"max_tokens": tokens}
    if sizes is not None:
        limits["sizes"] = {"sizes": sizes}
    return limits


def _joined(limits: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for limit in limits.values():
        for key, value in limit.items():
            joined[key] = np.minimum(joined[key], value) if key in joined else value
    return joined


def _bytes(dtype: str) -> float:
    return BYTES_A_PARAMETER[check_choice("inference_dtype", dtype, BYTES_A_PARAMETER)]


def _columns(allocation: Allocation, prefix: str) -> dict[str, FloatOrArray]:
    names = ("params", "tokens", "tokens_per_param", "train_flops", "inference_flops")
    names += ("total_flops", "train_cost", "inference_cost", "cost")
    return {prefix + name: getattr(allocation, name) for name in names}
