"""Seconds until the command answers, with every paper installed: medians of 5 after one warm-up."""

import statistics
import subprocess
import sys
import time

from paperworks.shared.cli import installed

COMMAND = [sys.executable, "-m", "paperworks.shared.cli"]


def seconds(command):
    times = []
    for _ in range(6):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main():
    bare = seconds([sys.executable, "-c", "pass"])
    print(f"{len(installed())} papers installed; a bare interpreter takes {bare:.3f} s\n")
    print("| what | seconds | target |\n|---|---|---|")
    print(f"| `paperworks list` | {seconds([*COMMAND, 'list']):.3f} | < 0.5 |")
    for slug in installed():
        print(f"| `paperworks {slug} --help` | {seconds([*COMMAND, slug, '--help']):.3f} | < 0.8 |")
        module = f"paperworks.{slug.replace('-', '_')}"
        every = f"import {module} as m; [getattr(m, name) for name in m.__all__]"
        for what, code in ((f"`import {module}`", f"import {module}"), ("all its names", every)):
            print(f"| {what} | {seconds([sys.executable, '-c', code]):.3f} | |")


if __name__ == "__main__":
    main()
