"""Small character-level language models on real text: runs from which a law can be fitted anywhere.

Pre-norm transformers with ALiBi and without biases (as MPT, the paper's family), trained from
scratch on the sources of the Python standard library. Needs torch (extra ``reproduce``).
"""

from __future__ import annotations

import hashlib
import math
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paperworks.shared.errors import InputError, require
from paperworks.shared.files import Checkpoints
from paperworks.shared.seeding import generator

RECIPE = 2  # to be raised with every change of how a model is trained
VOCABULARY = 128  # ASCII; every byte of another character counts as DEL
CONTEXT = 64
RATIOS = (1, 3, 10, 30, 100, 300, 1000, 3000)
MIN_TOKENS = 80_000
VALIDATION_SHARE = 0.05
VALIDATION_BYTES = 200_000


@dataclass(frozen=True)
class Text:
    """Characters to train on, and characters of other files to evaluate on."""

    train: np.ndarray
    validation: np.ndarray
    digest: str


@dataclass(frozen=True)
class ModelRun:
    """One model to train: its shape and its tokens.

    Attributes
    ----------
    width, layers : int
        Of the transformer; heads have 8 or 16 channels.
    tokens : int
        Characters seen in training.
    """

    width: int
    layers: int
    tokens: int

    @property
    def params(self) -> int:
        """All trained parameters, embedding (tied with the output) included."""
        norms = (2 * self.layers + 1) * self.width
        return VOCABULARY * self.width + self.layers * 12 * self.width**2 + norms

    @property
    def ratio(self) -> float:
        """Tokens per parameter."""
        return self.tokens / self.params

    @property
    def name(self) -> str:
        """Name of the checkpoint."""
        return f"w{self.width}-l{self.layers}-t{self.tokens}"


def standard_library_text(seed: int = 0, folder: Path | None = None) -> Text:
    """Read Python sources, shuffle the files, and keep a twentieth of them for validation.

    Parameters
    ----------
    seed : int
        Of the order of the files and of the split.
    folder : path, optional
        Where ``.py`` files are looked for; the running Python's standard library by default,
        without tests and installed packages.
    """
    root = folder or Path(sysconfig.get_paths()["stdlib"])
    skipped = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
    files = [
        path
        for path in sorted(root.rglob("*.py"))
        if not skipped & set(path.relative_to(root).parts)
    ]
    if len(files) < 20:
        raise InputError(f"{root}: expected at least 20 Python files, found {len(files)}")
    order = generator(seed, "files").permutation(len(files))
    held = max(1, round(VALIDATION_SHARE * len(files)))
    parts = [
        b"\0".join(files[i].read_bytes() for i in part) for part in (order[held:], order[:held])
    ]
    train, validation = (np.frombuffer(part, dtype=np.uint8) for part in parts)
    digest = hashlib.blake2b(parts[0] + parts[1], digest_size=8).hexdigest()
    last = VOCABULARY - 1
    return Text(np.minimum(train, last), np.minimum(validation[:VALIDATION_BYTES], last), digest)


def design(
    widths_and_layers: Sequence[tuple[int, int]], max_tokens: Sequence[int]
) -> list[ModelRun]:
    """Plan runs at ratios 1, 3, 10, 30, ... tokens per parameter for each size.

    Parameters
    ----------
    widths_and_layers : sequence of (int, int)
        The sizes.
    max_tokens : sequence of int
        The most tokens of each size. Runs of fewer than ``MIN_TOKENS`` are left out: they would be
        over after some hundred steps.
    """
    runs = []
    for (width, layers), most in zip(widths_and_layers, max_tokens, strict=True):
        params = ModelRun(width, layers, 0).params
        sized = [ModelRun(width, layers, ratio * params) for ratio in RATIOS]
        runs += [run for run in sized if MIN_TOKENS <= run.tokens <= most]
    return runs


def train_all(
    runs: Iterable[ModelRun],
    text: Text,
    checkpoints: Checkpoints,
    *,
    seed: int = 0,
    device: str = "cpu",
) -> np.ndarray:
    """Train each run that has no checkpoint yet and return the validation losses.

    Parameters
    ----------
    runs : iterable of ModelRun
        What to train; a run is saved as soon as it is done.
    text : Text
        What to train and evaluate on.
    checkpoints : Checkpoints
        Where finished runs are kept; its key must name the text and the seed.
    seed : int
        Of weights and order of the text.
    device : str
        A torch device.

    Returns
    -------
    numpy.ndarray, shape (runs,)
        Nats a character on the validation text.
    """
    losses = []
    for run in runs:
        saved = checkpoints.load(run.name)
        if saved is None:
            saved = {"loss": train(run, text, seed=seed, device=device)} | asdict(run)
            checkpoints.save(run.name, saved)
        losses.append(float(saved["loss"]))
    return np.array(losses)


def train(
    run: ModelRun,
    text: Text,
    *,
    seed: int = 0,
    device: str = "cpu",
    learning_rate: float | None = None,
) -> float:
    """Train one model and return its validation loss in nats a character.

    AdamW with linear warm-up over the first twentieth and linear decay to zero, so that each run
    is judged at the end of its own schedule.
    """
    torch = require("torch", package="paperworks-inference-scaling", extra="reproduce")
    random = generator(seed, run.name)
    parameters = _initial(torch, run, int(random.integers(2**62)), device)
    rows = batch_rows(run)
    steps = max(1, round(run.tokens / (rows * CONTEXT)))
    peak = learning_rate or peak_learning_rate(run)
    decayed = [p for p in parameters.values() if p.ndim == 2]
    others = [p for p in parameters.values() if p.ndim != 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=peak,
        betas=(0.9, 0.95),
        fused=True,
    )
    bias = _alibi(torch, run.width, device)
    warm_up = max(1, steps // 20)
    for step, batch in zip(range(steps), batches(text.train, rows, random), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = peak * min((step + 1) / warm_up, (steps - step) / (steps - warm_up + 1))
        loss = _loss(torch, parameters, run, bias, torch.from_numpy(batch).to(device))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(parameters.values()), 1.0)
        optimizer.step()
    return evaluate(parameters, run, text, device)


def evaluate(parameters: dict[str, Any], run: ModelRun, text: Text, device: str = "cpu") -> float:
    """Mean loss in nats a character over the validation text."""
    torch = require("torch", package="paperworks-inference-scaling", extra="reproduce")
    bias = _alibi(torch, run.width, device)
    windows = _windows(text.validation)
    with torch.no_grad():
        parts = [
            float(_loss(torch, parameters, run, bias, torch.from_numpy(part).to(device)))
            * len(part)
            for part in np.array_split(windows, max(1, len(windows) // 128))
        ]
    return math.fsum(parts) / len(windows)


def batch_rows(run: ModelRun) -> int:
    """Sequences a step, for about 2,000 steps: from 2^7 to 2^12 tokens a step.

    With larger batches short runs have too few steps and end far above what their tokens allow.
    """
    tokens = 2 ** round(math.log2(run.tokens / 2000))
    return min(max(tokens, 128), 4096) // CONTEXT


def peak_learning_rate(run: ModelRun) -> float:
    """Peak learning rate: 1 / width, and less for small batches as the root of their size.

    A sweep at widths 16, 48 and 160 agreed with the first; the second is the usual rule for Adam.
    """
    return 0.32 / run.width * min(1.0, math.sqrt(batch_rows(run) * CONTEXT / 1024))


def batches(train: np.ndarray, rows: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield batches of windows in random order; no window comes twice before all have come."""
    windows = _windows(train)
    while True:
        order = random.permutation(len(windows))
        for start in range(0, len(order) - rows + 1, rows):
            yield windows[order[start : start + rows]].astype(np.int64)


def _windows(data: np.ndarray) -> np.ndarray:
    """Cut into windows of one character more than the context; neighbours share one."""
    count = (len(data) - 1) // CONTEXT
    starts = np.arange(count)[:, None] * CONTEXT
    return data[starts + np.arange(CONTEXT + 1)].astype(np.int64)


def _heads(width: int) -> int:
    return width // (8 if width < 64 else 16)


def _initial(torch: Any, run: ModelRun, seed: int, device: str) -> dict[str, Any]:
    """Draw the weights from their own generator: torch's global one is left alone."""
    source = torch.Generator().manual_seed(seed)
    width, layers = run.width, run.layers

    def normal(rows: int, columns: int, std: float) -> Any:
        values = torch.randn(rows, columns, generator=source) * std
        return values.to(device).requires_grad_()

    parameters = {"embedding": normal(VOCABULARY, width, 0.02)}
    std, out = width**-0.5, (2 * layers) ** -0.5
    for i in range(layers):
        parameters[f"{i}.norm1"] = torch.ones(width, device=device, requires_grad=True)
        parameters[f"{i}.qkv"] = normal(3 * width, width, std)
        parameters[f"{i}.project"] = normal(width, width, std * out)
        parameters[f"{i}.norm2"] = torch.ones(width, device=device, requires_grad=True)
        parameters[f"{i}.up"] = normal(4 * width, width, std)
        parameters[f"{i}.down"] = normal(width, 4 * width, std / 2 * out)
    parameters["norm"] = torch.ones(width, device=device, requires_grad=True)
    return parameters


def _alibi(torch: Any, width: int, device: str) -> Any:
    """Bias of attention: falls linearly with distance, minus infinity for the future."""
    heads = _heads(width)
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    distance = np.arange(CONTEXT)[:, None] - np.arange(CONTEXT)[None]
    bias = np.where(distance >= 0, -slopes[:, None, None] * distance, -np.inf)
    return torch.tensor(bias, dtype=torch.float32, device=device)[None]


def _loss(torch: Any, p: dict[str, Any], run: ModelRun, bias: Any, batch: Any) -> Any:
    """Mean cross-entropy of the next character."""
    functional = torch.nn.functional
    inputs, targets = batch[:, :-1], batch[:, 1:]
    rows, length = inputs.shape
    width, heads = run.width, _heads(run.width)
    x = functional.embedding(inputs, p["embedding"])
    for i in range(run.layers):
        h = functional.layer_norm(x, (width,), p[f"{i}.norm1"])
        qkv = functional.linear(h, p[f"{i}.qkv"]).view(rows, length, 3, heads, width // heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        attended = attended.transpose(1, 2).reshape(rows, length, width)
        x = x + functional.linear(attended, p[f"{i}.project"])
        h = functional.layer_norm(x, (width,), p[f"{i}.norm2"])
        x = x + functional.linear(
            functional.gelu(functional.linear(h, p[f"{i}.up"])), p[f"{i}.down"]
        )
    x = functional.layer_norm(x, (width,), p["norm"])
    logits = functional.linear(x, p["embedding"])
    return functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))
