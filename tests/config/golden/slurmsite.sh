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
file_system="/scratch/io"
run_directory=$(mktemp -d "$file_system/iobands-BenchioFPP-XXXXXXXXXX") || { echo "iobands: $file_system: no directory can be made there: does it exist, may you write?" >&2; exit 1; }
trap 'rm -rf -- "$run_directory"' EXIT
exec {guard}> >(exec setsid sh -c 'cat; rm -rf -- "$1"' sh "$run_directory" > /dev/null 2>&1)
echo "$run_directory" > run_directory.txt
trap 'exit 143' TERM
trap 'exit 130' INT
df -Pk "$run_directory" > df.txt
free_kib=$(awk 'NR == 2 { print $4 }' df.txt)
[ "$free_kib" -ge 4194304 ] || { echo "iobands: $file_system: $free_kib KiB are free, this run needs 4 GiB: 4 to write, the rest to leave free" >&2; exit 1; }
timeout -k 5 20 srun --mpi=none --nodes=4 --ntasks=4 --ntasks-per-node=1 sh -c 'read -r load rest < /proc/loadavg; echo "load $load"; :' sh "$file_system" > nodes_before.txt 2> /dev/null || :
echo "$SLURM_JOB_NODELIST" > node_list.txt
{ id -un && timeout 10 squeue --noheader --states=RUNNING --partition="$SLURM_JOB_PARTITION" --format=%u; } > jobs.txt.part 2> /dev/null && mv jobs.txt.part jobs.txt || :
ldd "$(command -v ROOT/stage/slurmsite/batch/mpi/BuildBenchio_HASH/build/benchio)" > libraries.txt 2>&1
srun --cpus-per-task=1 ROOT/stage/slurmsite/batch/mpi/BuildBenchio_HASH/build/benchio 128 128 128 local proc fsync --directory="$run_directory" --read --verify --repeats=1 --result=result.jsonl --keep
exit_status=$?
echo "$exit_status" > exit_status.txt
find "$run_directory" -type f -printf '%s %f\n' > files.txt
exit "$exit_status"
