#!/bin/bash
#SBATCH --job-name="rfm_BenchioSSF_HASH"
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
module load PrgEnv-gnu craype-network-ucx cray-mpich-ucx
export MPICH_MPIIO_HINTS_DISPLAY=1
export MPICH_ENV_DISPLAY=1
export MPICH_MPIIO_STATS=1
export SLURM_WAIT="${SLURM_WAIT-60}"
source ./job.sh || exit 1
source ./lustre.sh || exit 1
export FI_OFI_RXM_SAR_LIMIT=64K
export MPICH_MPIIO_HINTS='*:cray_cb_write_lock_mode=2,*:cray_cb_nodes_multiplier=4'
file_system=/mnt/lustre/a2fs-nvme/work/z19/z19/shared
require_mounted lustre lustre
require_commands lustre
make_run_directory
require_space 1088 64
note_targets
stripe -c -1 -S 1024k
each_node=(srun --mpi=none --nodes=16 --ntasks=16 --ntasks-per-node=1)
look_before slurm lustre.sh
note_libraries ROOT/stage/archer2/compute/gnu-ucx/BuildBenchio_HASH/build/benchio
srun --cpus-per-task=1 ROOT/stage/archer2/compute/gnu-ucx/BuildBenchio_HASH/build/benchio 128 128 256 local mpiio fsync --verify --keep --directory="$run_directory" --repeats=1 --environment=FI_OFI_RXM_SAR_LIMIT --environment=MPICH_MPIIO_HINTS --result=result.jsonl
inspect_run_directory $?
look_after lustre.sh
read_layout
exit "$exit_status"
