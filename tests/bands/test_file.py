"""Bands (contract 3): figures worked out by hand, and every error found at load."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from itertools import combinations, product
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import iobands
from iobands.bands import Band, Bands, Epoch, load_bands, parse_bands
from iobands.model import FileError, canonical

GOOD = """\
schema: 1
system: archer2
epochs:
  - name: published-2023-10
    since: 2023-10-09
    source: the documentation
    bands:
      - match: {tool: benchio, pattern: fpp, medium: nvme, variable: write_bw}
        unit: GiB/s
        lower_quartile: 135
        median: 150
        upper_quartile: 180
        maximum: 200
      - match: {tool: benchio, pattern: fpp, medium: hdd, variable: write_bw}
        unit: GiB/s
        lower_quartile: 30
        median: 90
        upper_quartile: 160
        runs: 40
      - match: {tool: benchio, pattern: fpp, medium: hdd, variable: write_bw, nodes: 64}
        unit: GiB/s
        lower_quartile: 1
        median: 2
        upper_quartile: 3
        floor: 0.5
  - name: fsync
    since: 2024-05-01T06:00:00+01:00
    source: the change of the kernel
    bands: []
"""
IN_FORCE = datetime(2024, 1, 1, tzinfo=timezone.utc)
HDD = {"tool": "benchio", "pattern": "fpp", "medium": "hdd", "variable": "write_bw"}


def load(path: Path) -> Bands:
    """Return the bands of the system that the file is named after."""
    found = load_bands(path.parent, path.stem)
    assert found is not None
    return found


def write(directory: Path, text: str) -> Path:
    path = directory / "archer2.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_floor_of_the_published_bands(tmp_path: Path) -> None:
    nvme, hdd, own = load(write(tmp_path, GOOD)).epochs[0].bands
    # 30 (30/160)^1.5 = 30 * 0.081190 = 2.4357; 135 (135/180)^1.5 = 135 * 0.649519 = 87.685
    assert hdd.floor == pytest.approx(2.4357, abs=5e-5)
    assert nvme.floor == pytest.approx(87.685, abs=5e-4)
    assert hdd.floor == pytest.approx(math.exp(math.log(30) - 1.5 * math.log(160 / 30)))
    assert own.floor == 0.5
    assert hdd.runs == 40
    assert nvme.runs is None
    assert nvme.maximum == 200
    assert (hdd.epoch, hdd.source) == ("published-2023-10", "the documentation")


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (0.0, "collapsed"),
        (math.nextafter(0.5, 0), "collapsed"),
        (0.5, "below"),
        (math.nextafter(1, 0), "below"),
        (1.0, "within"),
        (3.0, "within"),
        (math.nextafter(3, 4), "above"),
        (math.inf, "above"),
    ],
)
def test_verdict_at_the_limits(tmp_path: Path, value: float, verdict: str) -> None:
    assert load(write(tmp_path, GOOD)).epochs[0].bands[2].verdict(value) == verdict


def test_nan_has_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NaN"):
        load(write(tmp_path, GOOD)).epochs[0].bands[0].verdict(math.nan)


def test_epochs_may_stand_in_any_order(tmp_path: Path) -> None:
    document = yaml.safe_load(GOOD)
    document["epochs"].reverse()
    bands = load(write(tmp_path, yaml.safe_dump(document)))
    assert [epoch.name for epoch in bands.epochs] == ["published-2023-10", "fsync"]


def test_most_specific_band_wins_whatever_the_types(tmp_path: Path) -> None:
    bands = load(write(tmp_path, GOOD))

    def median(**fields: object) -> float | None:
        band = bands.band_for({**HDD, **fields}, IN_FORCE)
        return band and band.median

    assert median(nodes=16) == 90
    assert median() == 90
    for nodes in (64, 64.0, "64", "64.0"):
        assert median(nodes=nodes) == 2
    assert median(medium="nvme", nodes=64) == 150
    assert median(medium="tape") is None
    assert median(variable="read_bw") is None
    assert median(system="archer2") == 90
    assert median(system="lumi") is None


@pytest.mark.parametrize("missing", [None, "null", "None", "", float("nan")])
def test_null_matches_a_missing_field(tmp_path: Path, missing: object) -> None:
    text = GOOD.replace("medium: nvme", "medium: nvme, stripe_count_asked: null")
    bands = load(write(tmp_path, text))
    fields = {**HDD, "medium": "nvme"}
    assert bands.band_for({**fields, "stripe_count_asked": missing}, IN_FORCE).median == 150
    assert bands.band_for({**fields, "stripe_count_asked": "-1"}, IN_FORCE) is None


# For each mistake: the text to replace in the good file, its replacement, and words of the message.
WRONG = {
    "unknown key of the file": (
        "schema: 1",
        "schema: 1\nnotes: x",
        ["line 2", "notes", "unknown key"],
    ),
    "other schema": ("schema: 1", "schema: 100", ["schema is 100", "newer"]),
    "schema true": ("schema: 1", "schema: true", ["schema is True"]),
    "schema missing": ("schema: 1\n", "", ["schema is missing"]),
    "other system": (
        "system: archer2",
        "system: lumi",
        ["line 2", "system is 'lumi'", "lumi"],
    ),
    "system number": ("system: archer2", "system: 2", ["system is 2", "quotes", "'2'"]),
    "unknown key of an epoch": (
        "    bands: []",
        "    bands: []\n    x: 1",
        ["epoch 'fsync'", "x is"],
    ),
    "source missing": (
        "    source: the documentation\n",
        "",
        ["'published-2023-10'", "source is missing"],
    ),
    "bands not a list": ("bands: []", "bands:", ["'fsync'", "bands is empty", "list"]),
    "since no time": ("since: 2023-10-09", "since: soon", ["published-2023-10", "since", "soon"]),
    "since impossible": ("since: 2023-10-09", "since: 2023-13-09", ["month"]),
    "since no offset": ("06:00:00+01:00", "06:00:00", ["'fsync'", "since", "UTC offset"]),
    "since number": ("since: 2023-10-09", "since: 2023", ["since", "2023-10-09"]),
    "since twice": (
        "2024-05-01T06:00:00+01:00",
        "2023-10-09",
        ["epoch 'fsync'", "epoch 'published-2023-10'", "2023-10-09T00"],
    ),
    "name twice": (
        "name: fsync",
        "name: published-2023-10",
        ["line 26", "epoch 'published-2023-10'", "epoch 1"],
    ),
    "unknown match field": (
        "medium: nvme",
        "media: nvme",
        ["line 8", "band 1, match", "media", "did you mean medium?"],
    ),
    "empty match": (
        "match: {tool: benchio, pattern: fpp, medium: nvme, variable: write_bw}",
        "match: {}",
        ["band 1", "match is {}", "at least one"],
    ),
    "match boolean": ("medium: nvme", "hints: no", ["band 1", "hints is False", "quotes"]),
    "match date": ("medium: nvme", "hints: 2023-10-09", ["hints is 2023-10-09", "'2023-10-09'"]),
    "match list": ("medium: nvme", "medium: [nvme]", ["medium is ['nvme']", "number", "string"]),
    "match nan": ("medium: nvme", "nodes: .nan", ["nodes is nan", "finite"]),
    "match word for number": ("medium: nvme", "nodes: many", ["nodes is 'many'", "number"]),
    "match other system": ("medium: nvme", "system: lumi", ["system", "lumi", "leave it out"]),
    "unknown variable": (
        "nvme, variable: write_bw",
        "nvme, variable: wrte",
        ["variable is 'wrte'", "did you mean write_bw?"],
    ),
    "unit missing": (
        "        unit: GiB/s\n        lower_quartile: 135",
        "        lower_quartile: 135",
        ["band 1", "unit is missing"],
    ),
    "other unit": (
        "unit: GiB/s\n        lower_quartile: 135",
        "unit: GB/s\n        lower_quartile: 135",
        ["line 9", "band 1", "unit is 'GB/s'", "GiB/s"],
    ),
    "median missing": ("        median: 150\n", "", ["band 1", "median is missing"]),
    "quartiles out of order": (
        "median: 150",
        "median: 190",
        ["line 11", "band 1", "median is 190", "upper_quartile 180"],
    ),
    "maximum too low": ("maximum: 200", "maximum: 179", ["upper_quartile is 180", "maximum 179"]),
    "floor too high": (
        "floor: 0.5",
        "floor: 1.5",
        ["line 25", "band 3", "floor is 1.5", "lower_quartile 1"],
    ),
    "zero": ("lower_quartile: 135", "lower_quartile: 0", ["lower_quartile is 0", "above 0"]),
    "negative": ("lower_quartile: 135", "lower_quartile: -1", ["lower_quartile is -1", "above 0"]),
    "nan": ("median: 150", "median: .nan", ["line 11", "median is nan", "finite"]),
    "inf": ("maximum: 200", "maximum: .inf", ["maximum is inf", "finite"]),
    "boolean": ("median: 150", "median: true", ["median is True", "number"]),
    "huge": ("maximum: 200", "maximum: 1" + "0" * 400, ["maximum", "finite"]),
    "text": ("median: 150", "median: '150'", ["median is '150'", "such as 150"]),
    "null median": ("median: 150", "median: null", ["median is empty", "number"]),
    "runs zero": ("runs: 40", "runs: 0", ["band 2", "runs is 0", "from 1"]),
    "runs fraction": ("runs: 40", "runs: 40.5", ["band 2", "runs is 40.5", "whole"]),
    "key twice": ("median: 150", "median: 150\n        median: 151", ["line 12", "'median'"]),
    "key that is no text": ("median: 150", "median: 150\n        no: 1", ["line 12", "key 'no'"]),
    "syntax": ("median: 150", "median: [150", ["line 12"]),
    "tab": ("        median: 150", "\tmedian: 150", ["line 11"]),
    "a tag": ("median: 150", "median: !!python/object:os.system 1", ["line 11", "tag"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_error_at_load(tmp_path: Path, name: str) -> None:
    old, new, mentions = WRONG[name]
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(FileError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    for mention in (str(path), *mentions):
        assert mention in message


NESTED = "a0: &a0 [1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    "text",
    [
        *("", "- 1\n", "just text\n", "? [1]\n: 2\n", "no: 1\n"),
        *("&a [*a]\n", "[" * 2000, NESTED),
        # an integer with too many digits for Python to print
        f"schema: 0x{'f' * 9000}\n",
    ],
)
def test_not_a_bands_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError, match=r"archer2\.yaml"):
        load(write(tmp_path, text))


def test_unreadable_files(tmp_path: Path) -> None:
    path = tmp_path / "archer2.yaml"
    path.mkdir()
    with pytest.raises(FileError, match=r"cannot be read: Is a directory"):
        load(path)
    path.rmdir()
    path.write_bytes(b"schema: 1\nsystem: \xff\n")
    with pytest.raises(FileError, match="byte 18 is not UTF-8"):
        load(path)


def test_a_file_that_takes_long_to_read_is_refused_at_once(tmp_path: Path) -> None:
    """It would take 25 s, of each command."""
    path = tmp_path / "archer2.yaml"
    path.write_bytes(b"- a\n" * (2**20 + 1))
    with pytest.raises(FileError, match=r"archer2\.yaml: not readable as YAML: it has more than 4"):
        load(path)


def test_a_directory_of_epochs_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    """Without its epochs, the levels before and after an upgrade would be compared."""
    (tmp_path / "here").symlink_to("here")
    with pytest.raises(FileError, match=r"/here: cannot be read: Too many levels of symbolic"):
        load_bands(tmp_path, "here")


def test_ambiguous_bands(tmp_path: Path) -> None:
    document = yaml.safe_load(GOOD)
    bands = document["epochs"][0]["bands"]
    bands[2]["match"] = {"tool": "benchio", "pattern": "fpp", "medium": "hdd", "nodes": "64"}
    # bands 2 (variable) and 3 (nodes): a write on 64 nodes meets both
    with pytest.raises(FileError, match=r"epoch 'published-2023-10': band 2 and band 3"):
        load(write(tmp_path, yaml.safe_dump(document)))
    bands[2]["match"]["pattern"] = "ssf"
    assert len(load(write(tmp_path, yaml.safe_dump(document))).epochs[0].bands) == 3


def test_byte_order_mark_and_quoted_times(tmp_path: Path) -> None:
    text = "\ufeff" + GOOD.replace("since: 2023-10-09", "since: '2023-10-09T00:00:00Z'")
    assert load(write(tmp_path, text)).epochs[0].since.utcoffset() == timedelta(0)


FIGURES = st.lists(st.floats(1e-3, 1e6), min_size=3, max_size=3).map(sorted)


def band_of(quartiles: list[float]) -> Band:
    low, median, high = quartiles
    return Band(
        match={},
        unit="GiB/s",
        lower_quartile=low,
        median=median,
        upper_quartile=high,
        maximum=None,
        floor=low * (low / high) ** 1.5,
        runs=None,
        epoch="e",
        source="s",
    )


@given(FIGURES, st.floats(0, 1e7), st.floats(0, 1e7))
def test_a_larger_value_never_has_a_worse_verdict(
    quartiles: list[float], one: float, other: float
) -> None:
    order = ["collapsed", "below", "within", "above"]
    band = band_of(quartiles)
    low, high = sorted((one, other))
    assert order.index(band.verdict(low)) <= order.index(band.verdict(high))


@given(FIGURES)
def test_reference_gives_back_the_floor(quartiles: list[float]) -> None:
    band = band_of(quartiles)
    median, lower, upper, unit = band.reference()
    assert -1 <= lower <= 0
    assert median * (1 + lower) == pytest.approx(band.floor, abs=1e-9 * median)
    assert (upper, unit) == (None, "GiB/s")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return
    with pytest.raises(FileError):
        parse_bands(encoded, Path("archer2.yaml"))


def test_imports_without_the_analysis_libraries() -> None:
    script = (
        "import sys; sys.modules.update(dict.fromkeys("
        "['pandas', 'numpy', 'matplotlib', 'typer', 'rich', 'jinja2', 'reframe']));"
        "import iobands.bands"
    )
    source = Path(iobands.__file__).parents[1]
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": str(source)})


def test_a_band_is_of_a_case_only_when_it_names_it(tmp_path: Path) -> None:
    text = GOOD.replace(
        "      - match: {tool: benchio, pattern: fpp, medium: nvme, variable: write_bw}",
        "      - match: {case: archer2-fpp, variable: write_bw}\n"
        "        unit: GiB/s\n        lower_quartile: 7\n        median: 8\n"
        "        upper_quartile: 9\n"
        "      - match: {tool: benchio, pattern: fpp, medium: nvme, variable: write_bw}",
    )
    bands = load(write(tmp_path, text))
    medians = {
        case: band and band.median
        for case in (None, "archer2-fpp", "archer2-stripe-size")
        for band in [bands.band_for({**HDD, "case": case}, IN_FORCE)]
    }
    assert medians == {None: 90, "archer2-fpp": 8, "archer2-stripe-size": None}


def test_a_band_without_a_variable_is_of_those_of_its_unit() -> None:
    epoch = Epoch("e", IN_FORCE, "s", (band_of([1, 2, 3]),))
    found = [epoch.best(Band, {"variable": name}) for name in ("write_bw", "create_rate", "other")]
    assert found == [epoch.bands[0], None, None]


def applies(match: Mapping[str, object], fields: Mapping[str, object]) -> bool:
    known = {name: canonical(value) for name, value in fields.items()}
    is_named = "case" in match or known["case"] is None
    return is_named and all(known[name] == canonical(value) for name, value in match.items())


def test_a_band_is_found_as_by_asking_each(tmp_path: Path) -> None:
    random = Random(1)
    kinds = ["fpp", "ssf", None]
    refused = 0
    for _ in range(120):
        text = GOOD.split("    bands:\n", maxsplit=1)[0] + "    bands:\n"
        matches = []
        for _ in range(random.randint(2, 5)):
            names = random.sample(["pattern", "nodes", "file_system", "case"], random.randint(1, 3))
            match = {name: random.choice([1, 2.0] if name == "nodes" else kinds) for name in names}
            matches.append(match)
            text += f"      - match: {json.dumps(match)}\n        unit: GiB/s\n"
            text += "        lower_quartile: 1\n        median: 2\n        upper_quartile: 3\n"
        is_ambiguous = any(
            len(one) == len(other)
            and (one.get("case") is None) == (other.get("case") is None)
            and all(one[k] == other[k] for k in one.keys() & other.keys())
            for one, other in combinations(matches, 2)
        )
        try:
            (epoch,) = load(write(tmp_path, text)).epochs
        except FileError as error:
            assert "can both apply" in str(error)
            assert is_ambiguous
            refused += 1
            continue
        assert not is_ambiguous
        for values in product(["fpp", "ssf", "x"], ["1", 2], kinds, kinds):
            fields = dict(zip(("pattern", "nodes", "file_system", "case"), values, strict=True))
            asked = [band for band in epoch.bands if applies(band.match, fields)]
            best = max((len(band.match) for band in asked), default=0)
            found = epoch.best(Band, fields)
            assert found == next((band for band in asked if len(band.match) == best), None)
    assert 20 < refused < 100
