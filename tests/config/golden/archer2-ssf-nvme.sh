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
export OMP_NUM_THREADS=1
module load PrgEnv-gnu craype-network-ucx cray-mpich-ucx
export FI_OFI_RXM_SAR_LIMIT="64K"
export MPICH_MPIIO_HINTS="*:cray_cb_write_lock_mode=2,*:cray_cb_nodes_multiplier=4"
export MPICH_MPIIO_HINTS_DISPLAY=1
export MPICH_ENV_DISPLAY=1
file_system="/mnt/lustre/a2fs-nvme/work/z19/z19/shared"
mounted_type=$(df --output=fstype "$file_system" 2> /dev/null | tail -n 1)
case "${mounted_type:-nothing}" in lustre) ;; *) { echo "iobands: $file_system: type asked: lustre; mounted there: ${mounted_type:-nothing}: is it mounted on $(uname -n)?" >&2; exit 1; } ;; esac
command -v lfs > /dev/null || { echo "iobands: $file_system: type lustre needs the command lfs, which is not here" >&2; exit 1; }
run_directory=$(mktemp -d "$file_system/iobands-BenchioSSF-XXXXXXXXXX") || { echo "iobands: $file_system: no directory can be made there: does it exist, may you write?" >&2; exit 1; }
trap 'rm -rf -- "$run_directory"' EXIT
exec {guard}> >(exec setsid sh -c 'cat; rm -rf -- "$1"' sh "$run_directory" > /dev/null 2>&1)
echo "$run_directory" > run_directory.txt
trap 'exit 143' TERM
trap 'exit 130' INT
df -Pk "$run_directory" > df.txt
free_kib=$(awk 'NR == 2 { print $4 }' df.txt)
[ "$free_kib" -ge 1140850688 ] || { echo "iobands: $file_system: $free_kib KiB are free, this run needs 1088 GiB: 64 to write, the rest to leave free" >&2; exit 1; }
timeout 20 lfs osts "$file_system" > targets.txt 2> /dev/null || :
said=$(lfs setstripe -c -1 -S 1024k "$run_directory" 2>&1) || { echo "iobands: $file_system: Lustre did not take the layout asked for: $(printf '%s\n' "$said" | head -n 1)" >&2; exit 1; }
timeout -k 5 20 srun --mpi=none --nodes=16 --ntasks=16 --ntasks-per-node=1 sh -c 'read -r load rest < /proc/loadavg; echo "load $load"; client=$(lfs getname "$1" | cut -d " " -f 1) && lctl get_param -n "llite.$client.stats"' sh "$file_system" > nodes_before.txt 2> /dev/null || :
echo "$SLURM_JOB_NODELIST" > node_list.txt
{ id -un && timeout 10 squeue --noheader --states=RUNNING --partition="$SLURM_JOB_PARTITION" --format=%u; } > jobs.txt.part 2> /dev/null && mv jobs.txt.part jobs.txt || :
ldd "$(command -v ROOT/stage/archer2/compute/gnu-ucx/BuildBenchio_HASH/build/benchio)" > libraries.txt 2>&1
srun --cpus-per-task=1 ROOT/stage/archer2/compute/gnu-ucx/BuildBenchio_HASH/build/benchio 128 128 256 local mpiio fsync --directory="$run_directory" --read --verify --repeats=1 --result=result.jsonl --keep
exit_status=$?
echo "$exit_status" > exit_status.txt
find "$run_directory" -type f -printf '%s %f\n' > files.txt
timeout -k 5 20 srun --mpi=none --nodes=16 --ntasks=16 --ntasks-per-node=1 sh -c 'client=$(lfs getname "$1" | cut -d " " -f 1) && lctl get_param -n "llite.$client.stats"' sh "$file_system" > nodes_after.txt 2> /dev/null || :
find "$run_directory" -type f | while read -r file; do echo "---"; lfs getstripe -y "$file" 2>&1; done > layout.yaml
exit "$exit_status"
