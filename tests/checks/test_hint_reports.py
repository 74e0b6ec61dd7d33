"""Hints count as in effect only if a library reports them."""

from checks.base.hints import displayed, in_effect, read_back, unproven, unset

# Two files; the second one got fewer aggregators; the layout is ROMIO's.
ROMIO = """\
benchio 0.1.0
key = cb_buffer_size            value = 16777216  \x20
key = cb_nodes                  value = 2         \x20
key = romio_filesystem_type     value = UFS: Generic ROMIO driver for all UNIX-like file systems
Writing to mpiio.dat
key = cb_buffer_size            value = 16777216  \x20
key = cb_nodes                  value = 1         \x20
"""
CRAY = """\
PE 0: MPICH MPIIO environment settings:
PE 0:   MPICH_MPIIO_HINTS                         = *:cb_nodes=8
PE 0: MPIIO hints for mpiio.dat:
          cb_buffer_size           = 16777216
          cb_nodes                 = 4
          cb_config_list           = *:*
 time = 0.5
          stray                    = 1
"""


def test_what_romio_displays():
    assert displayed(ROMIO) == {
        "cb_buffer_size": {"16777216"},
        "cb_nodes": {"1", "2"},
        "romio_filesystem_type": {
            "UFS: Generic ROMIO driver for all UNIX-like file systems",
        },
    }


def test_what_cray_s_library_displays_of_files_alone():
    assert displayed(CRAY) == {
        "cb_buffer_size": {"16777216"},
        "cb_nodes": {"4"},
        "cb_config_list": {"*:*"},
    }


def test_all_hints_of_presets_for_cray_s_library_are_displayed():
    """As it displays them in Cray's slides, of a file that it gave four stripes."""
    said = """\
PE 0: MPIIO hints for snap_nz512_nx1024_ny1024_it99.bin:
          cb_buffer_size           = 16777216
          romio_ds_write           = disable
          striping_factor          = 4
          striping_unit            = 1048576
          direct_io                = false
"""
    asked = {"cb_buffer_size": "16777216", "striping_factor": "4", "direct_io": "false"}
    proven = in_effect(asked, displayed(said))
    assert proven == asked
    assert unproven({**asked, "direct_io": "true"}, proven) == [
        "hint direct_io requested: true, in effect: false"
    ]


def test_what_was_read_back_in_each_phase():
    records = [{"hints": {"cb_nodes": "4", "other": "1"}}, {"hints": {"cb_nodes": "4"}}]
    assert read_back(records) == {"cb_nodes": {"4"}, "other": {"1", "not set"}}
    assert read_back([{"hints": {}}]) == {}
    assert read_back([]) == {}


def test_any_witness_proves_and_any_other_value_does_not():
    asked = {"romio_ds_write": "disable", "cb_nodes": "4", "cray_cb": "2"}
    open_file, library = {"cb_nodes": {"4"}, "other": {"1"}}, {"romio_ds_write": {"disable"}}
    proven = in_effect(asked, open_file, library)
    assert list(proven.items()) == [("cb_nodes", "4"), ("romio_ds_write", "disable")]
    assert unproven(asked, proven) == ["hint cray_cb requested: 2, in effect: no evidence"]
    proven = in_effect(asked, open_file, displayed(ROMIO))
    assert unproven({"cb_nodes": "4"}, proven) == [
        "hint cb_nodes requested: 4, in effect: 1 and 2 and 4"
    ]


def test_a_phase_without_the_hint_is_named():
    records = [{"hints": {"cb_nodes": "4"}}, {"hints": {"cb_buffer_size": "1"}}]
    proven = in_effect({"cb_nodes": "4"}, read_back(records))
    assert unproven({"cb_nodes": "4"}, proven) == [
        "hint cb_nodes requested: 4, in effect: 4 and not set"
    ]


def test_nothing_asked_is_nothing_unproven():
    assert unproven({}, in_effect({}, displayed(ROMIO))) == []


def test_a_variable_that_a_process_lacks_is_not_proven():
    asked = {"FI_OFI_RXM_SAR_LIMIT": "64K"}
    records = [{"environment": asked}, {"environment": {}}]
    assert unset(asked, records[:1]) == []
    assert unset(asked, records) == [
        "variable FI_OFI_RXM_SAR_LIMIT requested: 64K, on all processes: not set"
    ]
    assert unset(asked, [{"environment": {"FI_OFI_RXM_SAR_LIMIT": "1M"}}]) == [
        "variable FI_OFI_RXM_SAR_LIMIT requested: 64K, on all processes: 1M"
    ]
    assert unset({}, records) == []
