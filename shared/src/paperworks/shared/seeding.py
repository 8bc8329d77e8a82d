"""Explicit randomness: every stream is derived from one seed, and nothing global is touched."""

from __future__ import annotations

import hashlib

import numpy as np

from .errors import expected

Seed = int | np.random.SeedSequence | np.random.Generator | None


def generator(seed: Seed, *keys: str | int) -> np.random.Generator:
    """Make a generator from a seed.

    Parameters
    ----------
    seed : int, SeedSequence, Generator or None
        A generator is returned as it is (when there are no keys); ``None`` draws fresh entropy.
    *keys : str or int
        Names of the stream, for example a claim and a repetition. Streams of different keys are
        independent, and the stream of one key does not depend on which others were asked for.

    Returns
    -------
    numpy.random.Generator
        The same stream for the same seed and keys, on every machine.

    Raises
    ------
    InputError
        When the seed is negative or of another type.
    """
    if isinstance(seed, np.random.Generator):
        if not keys:
            return seed
        raise expected("seed", "an integer or SeedSequence where a stream is named", seed)
    words = [
        int.from_bytes(hashlib.blake2b(str(key).encode(), digest_size=8).digest(), "little")
        for key in keys
    ]
    sequence = _sequence(seed)
    if words:
        # Keys extend the spawn key, so that they cannot collide with plain seeds.
        sequence = np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, *words))
    return np.random.default_rng(sequence)


def spawn(seed: Seed, n: int) -> list[np.random.Generator]:
    """Make ``n`` independent generators; the i-th depends on the seed and i only.

    A ``Generator`` as seed spawns from its own seed sequence, as numpy does: a second call gives
    new children.
    """
    if isinstance(seed, np.random.Generator):
        return list(seed.spawn(n))
    sequence = _sequence(seed)
    return [
        np.random.default_rng(
            np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, i))
        )
        for i in range(n)
    ]


def _sequence(seed: Seed) -> np.random.SeedSequence:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise expected("seed", "an integer >= 0", seed)
    return np.random.SeedSequence(int(seed))
