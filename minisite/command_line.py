"""The commands of the minisite: messages and exit statuses."""

import argparse
import os
import signal
import sys
from collections.abc import Callable

from minisite import block_limit, lifecycle, slow_disk
from minisite.commands import user_environment
from minisite.errors import SiteError
from minisite.place import Place, find_place

_ELSEWHERE = (
    "The site is in the directory IOBANDS_MINISITE, by default in a directory below /var/tmp for "
    "each user and clone."
)


def up() -> int:
    """`minisite/up`."""
    _parse("Start the site and wait until each part is ready. Do nothing if it is up.")
    return _run(_up)


def down() -> int:
    """`minisite/down`."""
    _parse("End the site, even if it was started only in part, and remove all of it.")
    return _run(lifecycle.down)


def status() -> int:
    """`minisite/status`."""
    _parse("Show whether each part is up. The exit status is 0 if all are, else 1.")
    return _run(_status)


def run() -> int:
    """`minisite/run`."""
    parser = argparse.ArgumentParser(
        prog="minisite/run",
        description="Run a command as a user of the site, as after sourcing its env.",
        epilog=_ELSEWHERE,
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="such as: sinfo")
    command = parser.parse_args().command
    if not command:
        parser.error("name a command, such as sinfo")

    def work(site: Place) -> None:
        if not site.env.exists():
            raise SiteError(f"there is no site in {site.root}; start it with `make minisite`")
        os.environ.update(user_environment(site))
        try:
            os.execvp(command[0], command)
        except OSError as error:
            raise SiteError(f"{command[0]}: {error.strerror}") from error

    return _run(work)


def throttle() -> int:
    """`minisite/throttle`."""
    parser = argparse.ArgumentParser(
        prog="minisite/throttle",
        description="Change the limit of the slow disk, for reads and for writes.",
        epilog=_ELSEWHERE,
    )
    parser.add_argument("rate", nargs="?", help="bytes per second, such as 20M, or none")
    wanted = parser.parse_args().rate

    def work(site: Place) -> None:
        if wanted is not None:
            slow_disk.change(site, block_limit.parse_rate(wanted))
        elif slow_disk.device(site) is None:
            raise SiteError(f"there is no slow disk in {site.root}")
        rate = slow_disk.rate(site)
        print(f"slow disk: {f'{rate / 2**20:g} MiB/s' if rate else 'no limit'}")

    return _run(work)


def _parse(description: str) -> None:
    name = sys.argv[0].rsplit("/", 1)[-1]
    argparse.ArgumentParser(
        prog=f"minisite/{name}", description=description, epilog=_ELSEWHERE
    ).parse_args()


def _up(site: Place) -> None:
    # If a signal ends it, it ends the parts that it has started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    lifecycle.up(site)
    print(
        f"\n  To use it:   . {site.env}\n"
        "  then         sinfo; srun -N4 hostname; make minisite-run\n"
        f"  Directories  {site.ceph}  {site.fast}  {site.slow}\n"
        "  Slow disk    minisite/throttle 20M\n"
        "  Look, end    minisite/status   minisite/down"
    )


def _interrupt(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(number)


def _status(site: Place) -> int:
    parts = lifecycle.parts(site)
    for part in parts:
        print(f"{part.name:<11}{'up' if part.up else 'DOWN':<6}{part.what}")
    return 0 if all(part.up for part in parts) else 1


def _run(work: Callable[[Place], int | None]) -> int:
    try:
        return work(find_place()) or 0
    except SiteError as error:
        print(f"minisite: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("minisite: interrupted", file=sys.stderr)
        return 130
