"""The sizes that benchio gets for a volume: those of the sources, or smaller ones that fit."""

import pytest

from checks.cases.naming import kebab
from checks.cases.shapes import Volume, array, btio, cells, records, snapshots, stripes

GIB = 2**30
MIB = 2**20


def test_archer2_writes_32_mib_each():
    shape = array(Volume(2048, 65536))
    assert shape.words() == ["128", "128", "256", "local"]  # 128 * 128 * 256 * 8 = 32 MiB
    assert shape.bytes == 64 * GIB


def test_btio_as_csc_has_it():
    shape = btio(Volume(256, 100 * 1024))
    # 2048 x 1024 x 256 points on 16 x 16 processes, 5 values of 8 bytes, 5 steps
    assert shape.words() == ["128", "64", "256", "local"]
    assert shape.bytes == 2048 * 1024 * 256 * 5 * 8 * 5 == 100 * GIB


def test_a_small_btio_keeps_its_form_and_is_no_larger_than_allowed():
    shape = btio(Volume(4, 4))
    assert shape.bytes <= 4 * MIB
    # the cube root of 1 / 400 is 0.1357: 17.4, 8.7 and 34.7
    assert shape.sizes == (17, 8, 34)


def test_btio_gives_each_process_some_of_the_third_axis():
    assert btio(Volume(16, 0.001)).sizes == (1, 1, 4)


def test_snapshots_of_rtm():
    # 16 of 1024 x 1024 x 512 in single precision are 32 GiB, 2 MiB for each of 1024 in each
    shape = snapshots(Volume(1024, 32 * 1024))
    assert shape.words() == ["64", "64", "64", "local"]
    assert (shape.bytes, shape.options) == (32 * GIB, ("--steps=16",))


def test_the_dump_of_the_slides_is_not_rounded_down_to_a_good_part_less():
    # 6.4 GiB from 8000 processes are 838.9 KiB each: 26 planes of 32 KiB, where 6 of 128 are 768
    shape = array(Volume(8000, 6.4 * 1024), edge=64)
    assert shape.words() == ["64", "64", "26", "local"]
    assert shape.bytes == 8000 * 26 * 32 * 1024 > 0.99 * 6.4 * GIB


@pytest.mark.parametrize(("record", "segments"), [(1_000_000, 3220), (10_000, 3220)])
def test_records_of_the_slides(record, segments):
    shape = records(Volume(32, 96 * 1024), record)
    assert shape.words() == ["1", str(segments), "1", "local"]
    assert shape.options == (f"--record={record}",)
    assert shape.bytes == 32 * record * segments


def test_a_small_scale_has_fewer_records_of_the_same_size():
    shape = records(Volume(2, 2), 10_000)
    assert shape.sizes == (1, 104, 1)  # 1,048,576 // 10,000
    assert shape.bytes == 2 * 104 * 10_000


def test_files_of_one_mib_and_one_large_one():
    small = stripes(Volume(64, 10_000), files=None)
    assert (small.files, small.bytes) == (10_000, 10_000 * MIB)
    assert small.words() == ["128", "128", "80000", "global"]
    large = stripes(Volume(64, 100 * 1024))
    assert (large.files, large.bytes) == (1, 100 * GIB)


def test_names_of_cases():
    assert kebab("CscNonblockingOverBlocking") == "csc-nonblocking-over-blocking"
    assert kebab("Archer2FPP") == "archer2-fpp"
    assert kebab("CraySharedHdf5") == "cray-shared-hdf5"


def test_cells_have_64_values_each():
    # 32 GiB by 1024 processes: 32 MiB each, in cells of 512 bytes
    shape = cells(Volume(1024, 32 * 1024))
    assert shape.words() == ["64", "65536", "1", "local"]
    assert shape.bytes == 32 * GIB
    assert cells(Volume(4, 0.001)).sizes == (64, 1, 1)
