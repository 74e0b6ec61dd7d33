"""A stored snapshot gives the same views as one with the data that it was made from."""

import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from iobands.model import Leftover
from iobands.notify.changes import changes
from iobands.snapshot import Snapshot, public
from iobands.snapshot.stored import to_json
from iobands.views.dashboard.write import write_dashboard
from iobands.views.digest import digest_text, explanation
from iobands.views.figures import evidence
from iobands.views.openmetrics import history_metrics, state_metrics
from iobands.views.peers import peers_text
from tests.judge.test_peers import with_targets
from tests.sites import SiteFiles, slow
from tests.views.sites import everything


def with_an_alert_of_each_kind(root: Path) -> Snapshot:
    left = Leftover("here", Path("/scratch/left"), "is in use", bytes=3 * 2**30)
    return replace(everything(root), leftovers=(left,))


def with_slow_peers(root: Path) -> Snapshot:
    return SiteFiles(root).write(with_targets(40, slow=7, since=6)).read()


def with_a_drop_of_a_group(root: Path) -> Snapshot:
    return SiteFiles(root).days(slow(0.6, 12, file_system="a")).read()


SITES = (with_an_alert_of_each_kind, with_slow_peers, with_a_drop_of_a_group)


def said(site: Snapshot, directory: Path) -> dict[str, object]:
    """Return the output of every view."""
    write_dashboard(site, directory)
    return {
        "digest": digest_text(site, Console(width=100), every=True, rejected=True),
        "json": to_json(site),
        "explained": [explanation(site, each) for each in (*site.alerts, *site.series)],
        "figures": [evidence(site, each) for each in site.series[:2]],
        "metrics": state_metrics(site) + history_metrics(site),
        "peers": [peers_text(site, kind, every=True) for kind in ("target", "node")],
        "news": [each.alerts for each in changes((), site, frozenset({"degraded"}))[1]] != [],
        "pages": {
            str(path.relative_to(directory)): path.read_bytes()
            for path in directory.rglob("*")
            if path.is_file()
        },
    }


@pytest.mark.parametrize("make", SITES)
def test_every_view_says_the_same_without_the_perflogs(make, tmp_path):
    site = make(tmp_path / "site")
    alone = deepcopy(site)  # before any cached property of it was computed
    expected = said(site, tmp_path / "before")
    shutil.rmtree(tmp_path / "site")
    found = said(alone, tmp_path / "after")
    assert found.keys() == expected.keys()
    for view, text in expected.items():
        assert found[view] == text, view


def test_what_is_public_has_no_names_once_it_is_stored(tmp_path):
    site = with_an_alert_of_each_kind(tmp_path)
    (known,) = (each for each in site.alerts if each.acknowledgement)
    action = replace(known.acknowledgement.action, ticket="https://tickets/1", owner="joe")
    answered = replace(known, acknowledgement=replace(known.acknowledgement, action=action))
    site = replace(site, alerts=(*site.alerts, answered), past=(answered,))
    names = {"jane", "ticket 4711", "/scratch/left", "joe", "https://tickets/1"}
    assert {each for each in names if each in to_json(site)} == names
    text = to_json(public(site))
    assert known.subject in text
    assert [each for each in names if each in text] == []
