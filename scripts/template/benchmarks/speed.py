"""Time for many rows, beside what numpy needs to square and sum them (a lower bound)."""

import timeit

import numpy as np
from paperworks.paper_name import james_stein


def main():
    rows = np.random.default_rng(0).normal(size=(100_000, 20))
    ours = min(timeit.repeat(lambda: james_stein(rows), number=1, repeat=5))
    bound = min(timeit.repeat(lambda: np.sum(rows**2, axis=-1), number=1, repeat=5))
    print("| what | bound s | ours s | ours / bound |\n|---|---|---|---|")
    print(f"| shrink 10^5 rows of 20 | {bound:.4f} | {ours:.4f} | {ours / bound:.1f} |")


if __name__ == "__main__":
    main()
