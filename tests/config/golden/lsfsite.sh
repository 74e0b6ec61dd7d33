#!/bin/bash
#BSUB -J rfm_BenchioFPP_HASH
#BSUB -o rfm_job.out
#BSUB -e rfm_job.err
#BSUB -n 256
#BSUB -R "affinity[core(1)]"
#BSUB -W 90
#BSUB -q batch
#BSUB -P budget
#BSUB -U R7
#BSUB -R "span[ptile=64]"
#BSUB -wa TERM -wt 1
#BSUB -rn
#BSUB -x
export LC_ALL=C
trap 'exit 140' USR2
source ./job.sh || exit 1
file_system=/scratch/io
make_run_directory
require_space 4 4
look_before lsf
note_libraries ROOT/stage/lsfsite/batch/mpi/BuildBenchio_HASH/build/benchio
mpirun -np 256 ROOT/stage/lsfsite/batch/mpi/BuildBenchio_HASH/build/benchio 128 128 128 local proc fsync --verify --keep --directory="$run_directory" --repeats=1 --result=result.jsonl --ranks=ranks.csv
inspect_run_directory $?
exit "$exit_status"
