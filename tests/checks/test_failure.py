"""The reason why a scheduler killed a job, in the scheduler's words."""

from pathlib import Path

import pytest

from checks.base.failure import (
    failed_calls,
    how_it_ended,
    reason_in,
    state_of,
    why_it_failed,
    why_no_output,
)


@pytest.mark.parametrize(
    ("status", "state", "ended"),
    [
        ("", "TIMEOUT", "benchio did not end; the scheduler ended the job: TIMEOUT (limit 1800 s)"),
        ("", "NODE_FAIL", "benchio did not end; the scheduler ended the job: NODE_FAIL"),
        ("143", "TIMEOUT", "exit status 143; the scheduler ended the job: TIMEOUT"),
        (
            "143",
            "FAILED",
            "exit status 143 (asked to end: cancelled, near its limit 1800 s, or after",
        ),
        ("1", "FAILED", "exit status 1"),
        ("", "COMPLETED", "benchio did not run to its end"),
        ("", None, "benchio did not run to its end"),
    ],
)
def test_how_a_program_ended(status, state, ended):
    assert how_it_ended("benchio", status, state, 1800).startswith(ended)


def test_a_job_that_was_deleted_in_pbs_was_ended_by_a_signal():
    assert [state_of("COMPLETED", code) for code in (None, 0, 1, 143)] == ["COMPLETED"] * 4
    # `Exit_status = 271` in qstat -xf of OpenPBS 23.06, after qdel
    said = how_it_ended("benchio", "", state_of("COMPLETED", 271), 1800)
    assert said == "benchio did not end; the scheduler ended the job: signal 15 (limit 1800 s)"


def test_a_program_that_the_job_script_did_not_start_has_not_ended():
    refused = "iobands: /work: 0 GiB are free; this run needs 1 GiB"
    assert why_it_failed("benchio", "", "FAILED", 1800, f"{refused}\n") == refused
    assert why_it_failed("benchio", "", None, 1800, "lost") == "benchio did not run to its end"
    ended = "exit status 1: benchio: rank 0 on host n1: write of /work/f failed: EIO"
    assert why_it_failed("benchio", "1", "FAILED", 1800, ended.partition(": ")[2]) == ended


def test_why_a_job_left_no_output():
    # As if compute nodes did not mount the home directories.
    assert why_no_output("FAILED", 60, "/home/s") == (
        "the job left no output (FAILED): can its nodes reach the stage directory /home/s?"
    )
    cancelled = "the job never began: it was cancelled or waited for more than 60 s"
    assert why_no_output("CANCELLED", 60, "/home/s") == why_no_output(None, 60, "s") == cancelled


@pytest.mark.parametrize(
    "said",
    [
        "JOB 12 ON n1 CANCELLED AT 2026-11-22T01:00:00 DUE TO TIME LIMIT",
        # As these schedulers' documentation and issues show them.
        "=>> PBS: job killed: walltime 152 exceeded limit 120",
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
        "job.exception type=timeout severity=0 resource allocation expired",
    ],
)
def test_the_words_of_a_scheduler_that_kills_a_job(said):
    around = f"slurmstepd: error: *** {said} ***" if said.startswith("JOB") else said
    assert reason_in(f"some output\n{around}\n") == said.removesuffix(".")


# What Slurm 22.05 printed when the second of two processes was killed.
CANCELLED = "slurmstepd-n1: error: *** STEP 44.1 ON n1 CANCELLED AT 2026-11-27T20:52:25{} ***\n"
ENDED = "srun: error: n1: task 0: Terminated\nsrun: Force Terminated StepId=44.1\n"


# What Open MPI 4.1 printed in a job of OpenPBS 23.06, for which Debian did not build it.
SLOTS = f"""\
{"-" * 74}
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application:

  /home/ada/build/benchio

Either request fewer slots for your application, or make more slots
available for use.
{"-" * 74}
"""
# What it printed when a node refused the connection; a list of possible causes follows.
DAEMONS = f"""\
{"-" * 74}
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
{"-" * 74}
"""
# What it printed when a node was lost in a job of OpenPBS 23.06.
LOST = f"""\
{"-" * 74}
ORTE has lost communication with a remote daemon.

  HNP daemon   : [[56750,0],0] on node pn1
  Remote daemon: [[56750,0],1] on node pn2

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.
{"-" * 74}
"""
ENDED = f"""\
{"-" * 74}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{"-" * 74}
[n1:7] 3 more processes have sent help message
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            f"[n1:7] mca: base: components_open\n{SLOTS}",
            "There are not enough slots available in the system to satisfy the 4 slots that were "
            "requested by the application",
        ),
        (DAEMONS, "ORTE was unable to reliably start one or more daemons"),
        (LOST, "ORTE has lost communication with a remote daemon on node pn2"),
        (ENDED, None),
        (
            f"{ENDED}bash: line 3: mpirun: command not found\n",
            "bash: line 3: mpirun: command not found",
        ),
    ],
)
def test_a_launcher_that_starts_nothing_says_why(said, reason):
    assert reason_in(said) == reason


@pytest.mark.parametrize("how", ["Killed", "Out Of Memory", "Segmentation fault (core dumped)"])
def test_a_process_that_was_killed_is_named_before_what_slurm_did_then(how):
    said = f"srun: error: n2: task 1: {how}\n{CANCELLED.format('')}{ENDED}"
    assert reason_in(said) == f"n2: task 1: {how}"


@pytest.mark.parametrize("suffix", ["", ".x1B2c3D4e5"])
def test_a_file_of_the_run_is_named_without_the_directory_that_is_gone(suffix):
    data = f"/work/a/xfs/iobands-BenchioFPN-4b424af812{suffix}/data"
    said = "benchio: rank 0 on host n1: fsync of {}proc000000.dat failed: No space left on device"
    assert reason_in(said.format(f"{data}/")) == said.format("")
    assert reason_in(f'ERROR: open64("{data}/ior.dat") failed') == 'open64("ior.dat") failed'
    elsewhere = said.format("/work/a/iobands-old/data/")
    assert reason_in(elsewhere) == elsewhere


@pytest.mark.parametrize("repeated", ["/", "/a", "/iobands-"])
def test_a_long_line_takes_no_longer_to_read_than_to_print(repeated):
    said = f"benchio: {repeated * 50_000}"
    assert reason_in(said) == said


def test_a_process_that_was_killed_by_slurm_is_not_the_cause():
    killed = "srun: error: n1: tasks 0-1: Killed\n"
    step = "STEP 44.1 ON n1 CANCELLED AT 2026-11-27T20:52:25"
    assert reason_in(CANCELLED.format("") + ENDED + killed) == step
    why = " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"
    assert reason_in(killed + CANCELLED.format(why) + ENDED) == step + why


# What Slurm 22.05 and Open MPI 4.1 printed without SLURM_MPI_TYPE=pmix.
EXITED = """\
srun: error: n2: task 1: Exited with exit code 1
srun: error: n1: tasks 0,2-3: Exited with exit code 1
"""
WITHOUT_PMI = """\
[n1:17956] OPAL ERROR: Unreachable in file ext3x_client.c at line 112
--------------------------------------------------------------------------
The application appears to have been direct launched using "srun",
but OMPI was not built with SLURM's PMI support and therefore cannot
execute. There are several options for building PMI support under
"""


def test_what_srun_says_of_an_exit_status_is_the_last_resort():
    assert reason_in(EXITED + WITHOUT_PMI) == "OMPI was not built with SLURM's PMI support"
    unreachable = WITHOUT_PMI.splitlines()[0]
    assert reason_in(f"{EXITED}{unreachable}\n") == unreachable
    assert reason_in(EXITED) == EXITED.splitlines()[0]


# What Open MPI 6.0.0rc2 printed.
DEPRECATED = f"""\
{"-" * 74}
A deprecated MCA variable value was specified in the environment or
on the command line.  Deprecated MCA variables should be avoided;
they may disappear in future releases.

  Deprecated variable: rmaps_default_mapping_policy
  New variable:        mapby
{"-" * 74}
"""
NO_PML = f"""\
{"-" * 74}
No components were able to be opened in the pml framework.

This typically means that either no components of this type were
installed, or none of the installed components can be loaded.
"""


def test_a_deprecated_setting_is_not_the_cause():
    assert reason_in(DEPRECATED) is None
    cause = "No components were able to be opened in the pml framework"
    assert reason_in(DEPRECATED + NO_PML) == cause


# What Intel MPI 2021.15, MPICH 4.0 and Open MPI 5.0 printed below Slurm 22.05 and 24.11.
HYDRA = """\
[mpiexec@n1] Error: Unable to run bstrap_proxy (pid 2376, exit code 36608)
[mpiexec@n1] Error setting up the bootstrap proxies
slurmstepd-n2: error: execve(): /opt/impi/bin//hydra_bstrap_proxy: No such file or directory
srun: error: n2: task 1: Exited with exit code 2
slurmstepd-n1: error: *** STEP 43.0 ON n1 CANCELLED AT 2026-11-30T20:52:34 ***
srun: error: n1: task 0: Terminated
"""
ALONE = "PMI server not found. Please set I_MPI_PMI_LIBRARY variable if it is not a singleton case"
NO_PMIX = "No PMIx server was reachable, but a PMI1/2 was detected"
SINGLETONS = "If srun is being used to launch application,  2 singletons will be started.\n"
NO_WORDS = "Abort(2663823) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Unknown error"
STACK = "MPIR_Init_thread(196)........: \nMPIDU_bc_table_create(337)...: \n"
LOADER = "error while loading shared libraries: libmpi.so.12: cannot open shared object file"
ON_N2 = "srun: error: n2: task 1: Exited with exit code 127\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (f"MPI startup(): {ALONE}.\n" * 2, ALONE),
        (f"{NO_PMIX}.\n{SINGLETONS}", NO_PMIX),
        (f"{NO_WORDS} class, error stack:\n{STACK}", f"{NO_WORDS} class, error stack"),
        (
            HYDRA,
            "n2: error: execve(): /opt/impi/bin//hydra_bstrap_proxy: No such file or directory",
        ),
        (f"{ON_N2}/home/ada/hello: {LOADER}\n", f"n2: {LOADER}"),
        (f"/home/ada/hello: {LOADER}\n{ON_N2}", f"n2: {LOADER}"),
        (f"/home/ada/hello: {LOADER}\n", LOADER),
    ],
)
def test_mpi_that_does_not_start_below_slurm_says_why(said, reason):
    assert reason_in(said) == reason


ABORTED = """\
ior: aiori-POSIX.c:769: POSIX_Xfer: Assertion `rc >= 0' failed.
[n1:26948] *** Process received signal ***
[n1:26948] *** End of error message ***
srun: error: n1: task 0: Aborted (core dumped)
"""
ENDED_BY_MPI = f"""\
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
with errorcode -1.
{CANCELLED.format("")}srun: error: n1: task 0: Exited with exit code 255
"""


NOTICED = "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal"


def test_a_process_that_was_killed_is_named_by_open_mpi():
    said = "Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n{}\n"
    killed = f"{NOTICED} 9 (Killed)"
    assert reason_in(said.format(f"{killed}.")) == killed
    # as when the job is cancelled
    assert reason_in(said.format(f"{NOTICED} 15 (Terminated).")) is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "\nProgram received signal SIGSEGV: Segmentation fault - invalid memory reference.\n\n"
            "Backtrace for this error:\n#0  0x7f11a9a218c2 in ???\n#1  fatal in ???\n",
            "Program received signal SIGSEGV: Segmentation fault - invalid memory reference",
        ),
        (
            "[n1:05962] *** Process received signal ***\n[n1:05962] Signal: Bus error (7)\n"
            "[n1:05962] Signal code:  (-6)\n[n1:05962] *** End of error message ***\n",
            "Signal: Bus error (7)",
        ),
    ],
)
def test_a_process_that_crashed_is_named_although_mpirun_hangs(said, reason):
    """As gfortran 12 and Open MPI 4.1 print it; mpirun itself was ended by the time limit."""
    assert reason_in(said) == reason
    launched = f"{said}{NOTICED} 11 (Segmentation fault).\n"
    assert reason_in(launched) == f"{NOTICED} 11 (Segmentation fault)"


# What 3.3 and 4.0 print to standard output on a full file system, and MPI to standard error.
@pytest.mark.parametrize(
    ("around", "said", "reason"),
    [
        (
            ABORTED,
            "WARNING: write(26, 0x7f8937eff000, 1048576) failed No space left on device\n"
            "WARNING: task 0, partial write(), -1 of 1048576 bytes at offset 0\n",
            "write(26, 0x7f8937eff000, 1048576) failed No space left on device",
        ),
        (
            ENDED_BY_MPI,
            "ERROR: cannot access explicit, collective, MPI MPI_ERR_IO: input/output error, "
            "(aiori-MPIIO.c:459)\n",
            "cannot access explicit, collective, MPI MPI_ERR_IO: input/output error, "
            "(aiori-MPIIO.c:459)",
        ),
        (
            "with errorcode -1.\n"
            "mca_fbtl_posix_pwritev: error in (p)write(v):No space left on device\n",
            "ERROR: cannot write to file, (ior.c:1694)\n",
            "mca_fbtl_posix_pwritev: error in (p)write(v):No space left on device",
        ),
        (
            ENDED_BY_MPI,
            "WARNING: Task 0, partial write(), 69632 of 200000 bytes at offset 0\n"
            "ior ERROR: write(17, 0x7f, 130368) failed, errno 28, No space left on device (a.c:5)",
            "write(17, 0x7f, 130368) failed, errno 28, No space left on device (a.c:5)",
        ),
        (
            f"ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded: ignored.\n{ABORTED}",
            "11/27/2026 20:56:14: Process 3: FAILED in mdtest.c:296, no sync method\n",
            "no sync method",
        ),
    ],
    ids=["a write of 4.0", "MPI-IO of 4.0", "of Open MPI", "a write of 3.3", "a fault of mdtest"],
)
def test_ior_and_mdtest_say_why_before_mpi_ends_them(around, said, reason):
    assert reason_in(f"{around}\nWriting output to ior-write-1.json\n{said}") == reason


# What IOR 4.1 and 3.3 and mdtest 4.1 printed when a call failed; they exited with 0.
@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("WARNING: fsync(17) failed\n", "fsync(17) failed"),
        ("WARNING: fsync() failed\n", "fsync() failed"),
        (
            "ior WARNING: fsync(9) failed, errno 122, Disk quota exceeded (aiori-POSIX.c:600)\n",
            "fsync(9) failed, errno 122, Disk quota exceeded (aiori-POSIX.c:600)",
        ),
        (
            "WARNING: unable to stat file /w/iobands-Mdtest-500028b077/data/tree/file.mdtest.1.3\n",
            "unable to stat file tree/file.mdtest.1.3",
        ),
    ],
)
def test_a_call_that_failed_is_found_though_the_program_ended_well(said, call):
    table = "write     3485.09    3732       0.000253    1024.00\n"
    assert failed_calls(table + said) == [f"a failed call was measured: {call}"]


@pytest.mark.parametrize(
    "said",
    [
        'WARNING: The file "x" exists already and will be deleted\n',
        "WARNING: unable to use realpath() on file system.\n",
        "WARNING: Incorrect data on read (8 errors found).\n",
        "File stat                       0.000          0.000          0.000          0.000\n",
    ],
)
def test_no_other_warning_is_a_failed_call(said):
    assert failed_calls(said) == []


def test_no_call_failed_in_whole_runs_of_all_versions():
    outputs = [*Path(__file__).parent.glob("data/ior/*/*.out")]
    assert {each.parent.name for each in outputs} == {"3.3.0", "4.0.0", "4.1.0"}
    assert all(failed_calls(each.read_text(encoding="utf-8")) == [] for each in outputs)
