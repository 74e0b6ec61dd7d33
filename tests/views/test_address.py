"""The address of an alert's page."""

from __future__ import annotations

import pytest

from iobands.snapshot import Alert, Severity
from iobands.views.alert_lines import address_of, page_of

ALERT = Alert(Severity.DEGRADED, "scratch writes", number=17, system="hydra")


@pytest.mark.parametrize(
    "dashboard",
    [
        "https://io.example.org/hydra",
        "https://io.example.org/hydra/",
        "https://io.example.org/hydra/index.html",
        "https://io.example.org/hydra/index.html#/?q=scratch",
        "https://io.example.org/hydra/?v=2#/",
    ],
)
def test_it_is_below_the_dashboard_however_that_is_written(dashboard: str) -> None:
    assert address_of(ALERT, dashboard) == "https://io.example.org/hydra/alerts/hydra-17.html"


def test_it_is_the_dashboard_for_an_alert_without_a_number() -> None:
    alert = Alert(Severity.NO_DATA, "scratch fpp write_bw", system="hydra")
    assert address_of(alert, "https://io.example.org/") == "https://io.example.org/"
    assert page_of(alert) == ""


def test_it_is_empty_without_a_dashboard() -> None:
    assert address_of(ALERT, "") == ""


@pytest.mark.parametrize("system", ['a b"><script>', "é" * 200, "x" * 200, ""])
def test_any_system_gives_a_plain_file_name(system: str) -> None:
    alert = Alert(Severity.DEGRADED, "a", number=1, system=system)
    directory, _, name = page_of(alert).partition("/")
    assert directory == "alerts"
    assert name.removesuffix("-1.html").isalnum() and len(name) == 17
