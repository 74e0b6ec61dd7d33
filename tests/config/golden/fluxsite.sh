#!/bin/bash
export LC_ALL=C
#flux: --nodes=4
#flux: --nslots=256
#flux: --exclusive
#flux: --time-limit=5400s
#flux: --signal=TERM@60
#flux: --bank=budget
trap 'exit 129' HUP
source ./job.sh || exit 1
file_system=/scratch/io
make_run_directory
require_space 4 4
look_before flux
note_libraries ROOT/stage/fluxsite/batch/mpi/BuildBenchio_HASH/build/benchio
flux run --nodes=4 --ntasks=256 ROOT/stage/fluxsite/batch/mpi/BuildBenchio_HASH/build/benchio 128 128 128 local proc fsync --verify --keep --directory="$run_directory" --repeats=1 --result=result.jsonl --ranks=ranks.csv
inspect_run_directory $?
exit "$exit_status"
