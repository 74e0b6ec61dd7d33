#!/bin/bash
#PBS -N rfm_BenchioFPP_
#PBS -o rfm_job.out
#PBS -e rfm_job.err
#PBS -l walltime=1:30:0
#PBS -l select=4:mpiprocs=64:ncpus=64
#PBS -q batch
#PBS -A budget
#PBS -q R7
#PBS -l place=scatter:exclhost
#PBS -r n
cd ROOT/stage/pbsprosite/batch/mpi/BenchioFPP_HASH
export LC_ALL=C
source ./job.sh || exit 1
file_system=/scratch/io
make_run_directory
require_space 4 4
look_before pbspro
note_libraries ROOT/stage/pbsprosite/batch/mpi/BuildBenchio_HASH/build/benchio
mpiexec -n 256 ROOT/stage/pbsprosite/batch/mpi/BuildBenchio_HASH/build/benchio 128 128 128 local proc fsync --verify --keep --directory="$run_directory" --repeats=1 --result=result.jsonl --ranks=ranks.csv
inspect_run_directory $?
exit "$exit_status"
