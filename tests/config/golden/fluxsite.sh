#!/bin/bash
#flux: --nodes=4
#flux: --nslots=256
#flux: --exclusive
#flux: --time-limit=5400s
#flux: --signal=TERM@60
#flux: --bank=budget
trap 'exit 129' HUP
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
timeout -k 5 20 sh -c 'read -r load rest < /proc/loadavg; echo "load $load"; :' sh "$file_system" > nodes_before.txt 2> /dev/null || :
{ id -un && timeout 10 flux jobs -A --no-header --filter=running --format={username}; } > jobs.txt.part 2> /dev/null && mv jobs.txt.part jobs.txt || :
ldd "$(command -v ROOT/stage/fluxsite/batch/mpi/BuildBenchio_HASH/build/benchio)" > libraries.txt 2>&1
flux run --nodes=4 --ntasks=256 ROOT/stage/fluxsite/batch/mpi/BuildBenchio_HASH/build/benchio 128 128 128 local proc fsync --directory="$run_directory" --read --verify --repeats=1 --result=result.jsonl --keep
exit_status=$?
echo "$exit_status" > exit_status.txt
find "$run_directory" -type f -printf '%s %f\n' > files.txt
exit "$exit_status"
