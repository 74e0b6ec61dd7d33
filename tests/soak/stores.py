"""Pushes and pulls that are killed at random instants: the last part of `make soak`.

In between, samples are added. At the end one push and one pull complete; then the store and its
copy have every row, and give the same digest as the files.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from iobands.source.push import (
    Pushed,
    copy,
    gather,
    push_new,
    read_pushed,
    write_pushed,
)
from iobands.source.store import CONTENT, open_store
from tests.factory import NOW, line
from tests.source.engines import directory, postgres
from tests.source.test_store import from_files, from_store, write_site

PERFLOGS, CONFIG = Path("perflogs"), Path("config")

FORK = multiprocessing.get_context("forkserver")


def within(place: Path, work: Callable[[str], None], url: str) -> None:
    """Do `work` in a directory, because the server that forks processes is in another one."""
    os.chdir(place)
    work(url)


def push(url: str) -> None:
    """Do what `iobands push` does."""
    before = read_pushed(PERFLOGS, url)
    with open_store(url, new=True) as store:
        pushed, *_ = push_new(store, PERFLOGS, CONFIG, before, datetime.now(timezone.utc))
    write_pushed(PERFLOGS, url, pushed)


def pull(url: str) -> None:
    """Do what `iobands pull` does, into the directory `copy`."""
    Path("copy").mkdir(exist_ok=True)
    with open_store(url, new=True) as store, open_store("copy", new=True) as target:
        copy(store, target, "here")


def killed_at(seconds: float, work: Callable[[str], None], url: str) -> bool:
    """Do `work` in a separate process, kill it after a time, and return whether it still ran."""
    process = FORK.Process(target=within, args=(Path.cwd(), work, url))
    process.start()
    process.join(seconds)
    still = process.is_alive()
    process.kill()
    process.join()
    return still


def soak(url: str, instants: int, seed: int) -> str:
    """Kill pushes and pulls of a site in the working directory, and return what is wrong."""
    draw, killed = random.Random(seed), 0
    longest = {}
    for work in (push, pull):
        begin = time.monotonic()
        killed_at(600, work, url)
        longest[work] = time.monotonic() - begin
    for instant in range(instants):
        if instant % 20 == 0:  # a newest line, as a session leaves it
            when = NOW - timedelta(minutes=instants - instant)
            with next(PERFLOGS.glob("here/*/*.log")).open("a") as log:
                log.write(line(job_completion_time=when.isoformat(), system="here") + "\n")
        work = draw.choice((push, pull))
        killed += killed_at(draw.uniform(0, longest[work]), work, url)
    push(url)
    pull(url)
    print(f"{url.partition(':')[0]}: {killed} of {instants} pushes and pulls were killed")
    rows = gather(PERFLOGS, CONFIG, Pushed()).samples.n_unique(CONTENT)
    for place in (url, "copy"):
        with open_store(place) as store:
            samples, _ = store.samples("here")
            # a push that was killed before it removed the old file left rows twice; they count once
            if (found := samples.frame.n_unique(CONTENT)) != rows:
                return f"{place}: {found} rows instead of {rows}"
            if from_store(store) != from_files(Path()):
                return f"{place}: another digest than from the files"
    return ""


def main() -> int:
    """Soak a directory and PostgreSQL."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instants", type=int, default=500, help="of each engine")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # preload what takes long to import; this file itself would be loaded twice
    FORK.set_forkserver_preload(["tests.source.test_store", "iobands.source.postgres"])
    wrong = []
    for engine in (directory, postgres):
        with tempfile.TemporaryDirectory() as place, engine() as url:
            os.chdir(place)
            write_site(Path())
            wrong.append(soak(url, options.instants, options.seed))
            os.chdir("/")
    print(*filter(None, wrong), sep="\n")
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
