#!/bin/bash
#SBATCH --job-name="rfm_BenchioFPP_HASH"
#SBATCH --ntasks=2048
#SBATCH --ntasks-per-node=128
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:20:0
#SBATCH --exclusive
#SBATCH --nodes=16
#SBATCH --partition=standard
#SBATCH --qos=standard
#SBATCH --hint=nomultithread
#SBATCH --distribution=block:block
#SBATCH --signal=TERM@60
#SBATCH --no-requeue
export LC_ALL=C
export OMP_NUM_THREADS=1
module load PrgEnv-gnu
export MPICH_ENV_DISPLAY=1
export SLURM_WAIT="${SLURM_WAIT-60}"
source ./job.sh || exit 1
source ./lustre.sh || exit 1
file_system=/mnt/lustre/a2fs-nvme/work/z19/z19/shared
require_mounted lustre lustre
require_commands lustre
make_run_directory
require_space 1088 64
note_targets
stripe -c 1 -S 1024k
each_node=(srun --mpi=none --nodes=16 --ntasks=16 --ntasks-per-node=1)
look_before slurm lustre.sh
note_libraries ROOT/stage/archer2/compute/gnu-ofi/BuildBenchio_HASH/build/benchio
srun --cpus-per-task=1 ROOT/stage/archer2/compute/gnu-ofi/BuildBenchio_HASH/build/benchio 128 128 256 local proc fsync --verify --keep --directory="$run_directory" --repeats=1 --result=result.jsonl --ranks=ranks.csv
inspect_run_directory $?
look_after lustre.sh
read_layout
exit "$exit_status"
