"""The command `iobands canary`: whether the file systems of one node are fit."""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from iobands import model
from iobands.commands import cli
from iobands.judge.canary import FEWEST_NODES, FEWEST_SAMPLES, AgainstPeers
from iobands.measure import canary as node_canary
from iobands.measure import canary_log
from iobands.measure.canary import Look, Nest
from iobands.measure.canary_log import CanaryRow

_WORDS = {model.OK: "FIT", model.CRITICAL: "UNFIT", model.UNKNOWN: "UNKNOWN"}
_VERBS = {"write_bw": "writes", "read_bw": "reads"}
_LEAST = 3.0  # seconds for a run
_BESIDE = 4.0  # seconds for the rest of the script, and for killing a program that hangs


def canary(
    root: cli.RootOption = None,
    system: Annotated[
        str | None, "NAME", "The system. [default: the only one with a benchio]"
    ] = None,
    partition: Annotated[
        str | None, "NAME", "The partition of this node. [default: the first with a benchio]"
    ] = None,
    environment: Annotated[
        str | None, "NAME", "The environment of benchio. [default: the first with a benchio]"
    ] = None,
    file_systems: Annotated[
        list[str] | None,
        cli.option("--file-system NAME", "Only this file system; repeatable. [default: all]"),
    ] = None,
    node: Annotated[
        str | None, "NAME", "The node's name in the samples. [default: Slurm's, else the host's]"
    ] = None,
    mib: Annotated[int, cli.option("--mib MIB", "MiB to write in each repeat.", min=1)] = 32,
    limit: Annotated[
        float, cli.span("--limit", "Run at most this long: seconds, or 2m.", "seconds", 10)
    ] = 60,
    wait: Annotated[
        float,
        cli.span("--wait", "Wait at most this long for a session: seconds, or 2m.", "seconds"),
    ] = 30,
) -> None:
    """Check the file systems of this node: mounted, writable, data verified, as fast as peers.

    It runs the benchio that the last session used, with one process, and needs no scheduler. Called
    by root, it runs as the owner of the site's directory. It prints one line. The exit status is 0
    if the node is fit, 2 if it is unfit, and 3 if this is unknown.
    """

    def work() -> tuple[int, str]:
        name = node or os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
        try:
            site = root or cli.find_root(Path.cwd())
            if site is None:
                raise model.SessionError("no config/systems here or above; give --site DIR")
            node_canary.become_owner(site)
            nest = _nest(site.resolve(), system, partition, environment, name, file_systems)
            status, said = _judged(nest, mib, limit, wait)
        except Exception as error:
            if not cli.is_for_people(error):
                traceback.print_exc()
            status, said = model.UNKNOWN, cli.reason_of(error)
        text = model.printable(f"IOBANDS {_WORDS[status]}: {name}: {said}")
        return status, text.replace("|", "/")

    status, line = node_canary.within(limit + wait + 15, work)
    cli.show(line)
    raise typer.Exit(status)


def _nest(
    site: Path,
    system: str | None,
    partition: str | None,
    environment: str | None,
    node: str,
    wanted: Sequence[str] | None,
) -> Nest:
    """Choose partition, environment and file systems by the site files and the kept builds."""
    if not cli.is_site(site):
        raise model.SessionError(f"{site}: no config/systems there")
    read = cli.site_files(site / "config" / "systems")
    names = [system] if system else sorted(each.name for each in (site / "perflogs").glob("[!.]*/"))
    found: dict[str, Nest] = {}
    for name in names:
        site_file = read(name)
        every = product(site_file.partitions.items(), site_file.environments.items())
        for (part, extras), (built, about) in every:
            is_wanted = partition in {None, part} and environment in {None, built}
            if is_wanted and node_canary.build_pointer(site, name, part, built).is_file():
                here = extras.get("filesystems", {})
                found.setdefault(name, Nest(site, name, part, built, node, here, about))
    if not found:
        raise model.SessionError("no session has kept a benchio for it; run `iobands run` first")
    if len(found) > 1:
        raise model.SessionError(f"give --system: {', '.join(found)}")
    (nest,) = found.values()
    here = nest.file_systems
    if missing := [each for each in wanted or () if each not in here]:
        known = ", ".join(here)
        raise model.SessionError(f"no file system {missing[0]} in {nest.partition}; it has {known}")
    return replace(nest, file_systems={each: here[each] for each in wanted or here})


def _judged(nest: Nest, mib: int, limit: float, wait: float) -> tuple[int, str]:
    """Test each file system; return the worst status, and a text with the worst results first."""
    perflogs, until = nest.site / "perflogs", time.monotonic() + wait
    own = canary_log.log_of(perflogs, nest.system, nest.node)
    node_canary.await_session(perflogs, until, lambda said: cli.note(f"{nest.node} {said}"))
    with canary_log.held_log(own, until) as log:
        end = time.monotonic() + limit
        peers = canary_log.rows_of_peers(own, len(nest.file_systems) * len(_VERBS))
        found = []
        for number, name in enumerate(nest.file_systems):
            share = (end - time.monotonic()) / (len(nest.file_systems) - number)
            status, said = _judged_one(nest, name, mib, share, peers, log)
            found.append((status, f"{name}: {said}"))
    found.sort(key=lambda each: (each[0] != model.CRITICAL, each[0] != model.UNKNOWN))
    return model.worst(status for status, _ in found), "; ".join(said for _, said in found)


def _judged_one(
    nest: Nest,
    name: str,
    mib: int,
    share: float,
    peers: Mapping[str, Sequence[CanaryRow]],
    log: int,
) -> tuple[int, str]:
    """Test a file system within `share` seconds, twice if it is not fit; log the samples."""
    end = time.monotonic() + share
    looks: list[Look] = []
    runs: list[Look] = []  # the looks with a rate, or with an upper bound of it
    held: list[AgainstPeers] = []
    also: set[str] = set()
    for purpose in (model.MANUAL, model.REPEAT):
        left = end - time.monotonic() - (share / 2 if purpose == model.MANUAL else 0)
        if left < _LEAST:
            break
        run = node_canary.look(nest, name, mib, max(2, int(left - _BESIDE)))
        looks.append(run)
        if not run.rates and run.at_most is None:
            continue
        runs.append(run)
        held, also = _held(runs, peers)
        if run.rates:
            verdicts = {each.variable: each.verdict for each in held}
            canary_log.add_rows(log, node_canary.rows_of_run(run, purpose, verdicts))
        if all(each.verdict != "collapsed" for each in held):
            break
    if not looks:
        return model.UNKNOWN, "no time was left"
    if looks[-1] not in runs:
        status, why = looks[-1].status, looks[-1].why
        same = {"partition": nest.partition, "environ": nest.environ, "file_system": name}
        rows = chain(*peers.values())
        if looks[-1].is_unstarted and any(same.items() <= row.items() for row in rows):
            status, why = model.CRITICAL, f"{why}; it runs on other nodes"
        if status == model.CRITICAL and len(looks) == 1:
            status, why = model.UNKNOWN, f"{why}; no time was left to check it again"
        return status, why
    said = _shown(held)
    if any(each.is_slow for each in held):
        where = f"slow, as on {min(also)}, so the node is not to blame" if also else "slow"
        return (model.UNKNOWN if also else model.CRITICAL), f"{where}: {said}"
    if not runs[-1].rates:
        return model.UNKNOWN, runs[-1].why
    if any(each.verdict == "collapsed" for each in held):
        return model.UNKNOWN, f"slow once; no time was left to measure it again: {said}"
    return model.OK, said


def _held(
    runs: Sequence[Look], peers: Mapping[str, Sequence[CanaryRow]]
) -> tuple[list[AgainstPeers], set[str]]:
    """Return the rates of `runs` with those of the peers, and the names of slow peers."""
    found, also = [], set()
    for variable in _VERBS:
        rates = [run.rates.get(variable, run.at_most) for run in runs]
        known = [rate for rate in rates if rate is not None]
        if len(known) == len(rates):
            row = {**runs[-1].columns, "perf_var": variable}
            samples, slow = canary_log.samples_of_peers(peers, row)
            found.append(AgainstPeers(variable, known, samples))
            also |= {*slow} if found[-1].is_slow else set()
    return found, also


def _shown(held: Sequence[AgainstPeers]) -> str:
    """Return a text with the newest rates, and with the peers' median if there is a band."""
    said = []
    for each in held:
        peers = f" (peers {model.figure(median(each.samples))})" if each.floor is not None else ""
        said.append(f"{_VERBS[each.variable]} {model.figure(each.rates[-1])}{peers}")
    rates = f"{', '.join(said)} GiB/s"
    if all(each.floor is not None for each in held):
        return rates
    fewest = min(held, key=lambda each: len(each.samples))
    runs, nodes = len(fewest.samples), len(fewest.peers)
    count = f"{runs} of {FEWEST_SAMPLES} runs, {nodes} of {FEWEST_NODES} peers"
    return f"{rates}, no band yet ({count})"
