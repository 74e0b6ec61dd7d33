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
export OMP_NUM_THREADS=1
module load PrgEnv-gnu
file_system="/mnt/lustre/a2fs-nvme/work/z19/z19/shared"
run_directory=$(mktemp -d "$file_system/iobands-BenchioFPP-XXXXXXXXXX") || { echo "iobands: $file_system: no directory can be made there: does it exist, may you write?" >&2; exit 1; }
trap 'rm -rf -- "$run_directory"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
df -Pk "$run_directory" > df.txt
free_kib=$(awk 'NR == 2 { print $4 }' df.txt)
[ "$free_kib" -ge 1140850688 ] || { echo "iobands: $file_system: $free_kib KiB are free, this run needs 1088 GiB: 64 to write, the rest to leave free" >&2; exit 1; }
lfs setstripe -c 1 "$run_directory" || exit 1
srun --cpus-per-task=1 ROOT/stage/archer2/compute/gnu-ofi/BuildBenchio_HASH/build/benchio 128 128 256 local proc fsync --directory="$run_directory" --read --verify --repeats=1 --result=result.jsonl --keep
exit_status=$?
echo "$exit_status" > exit_status.txt
find "$run_directory" -type f -printf '%s %f\n' > files.txt
lfs osts "$run_directory" > targets.txt
for file in "$run_directory"/*; do echo "---"; lfs getstripe -y "$file"; done > layout.yaml
exit "$exit_status"
