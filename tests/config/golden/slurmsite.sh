#!/bin/bash
#SBATCH --job-name="rfm_BenchioFPP_HASH"
#SBATCH --ntasks=256
#SBATCH --ntasks-per-node=64
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=1:30:0
#SBATCH --exclusive
#SBATCH --nodes=4
#SBATCH --partition=batch
#SBATCH --account=budget
#SBATCH --reservation=R7
#SBATCH --signal=TERM@60
#SBATCH --no-requeue
export LC_ALL=C
export SLURM_WAIT="${SLURM_WAIT-60}"
source ./job.sh || exit 1
file_system=/scratch/io
make_run_directory
require_space 4 4
each_node=(srun --mpi=none --nodes=4 --ntasks=4 --ntasks-per-node=1)
look_before slurm
note_libraries ROOT/stage/slurmsite/batch/mpi/BuildBenchio_HASH/build/benchio
srun --cpus-per-task=1 ROOT/stage/slurmsite/batch/mpi/BuildBenchio_HASH/build/benchio 128 128 128 local proc fsync --verify --keep --directory="$run_directory" --repeats=1 --result=result.jsonl --ranks=ranks.csv
inspect_run_directory $?
exit "$exit_status"
