# shellcheck shell=bash
# A canary on one file system, called in a stage directory with benchio in it:
#
#   canary.sh FILE_SYSTEM ASKED MIB ROOM_GIB SECONDS [MOUNTED_AS]...
#
# It uses the guards and the run directory of a job. `refuse` names the fault.
export LC_ALL=C
# shellcheck source=checks/base/job.sh
source "${BASH_SOURCE[0]%/*}/job.sh" || exit
file_system=$1 asked=$2 mib=$3 room=$4 seconds=$5
shift 5

# It may be unmounted or stale: the reason follows the last colon of stat's message.
said=$(stat -L -c %m -- "$file_system" 2>&1) || refuse "${said##*: }"
if [ "$#" -gt 0 ]; then
    require_mounted "$asked" "$@"
elif [ "$said" = / ]; then
    refuse "mounted there: nothing but the root file system; if it belongs there, say so by" \
        "'mounted_as' in the site file"
fi
touch making
make_run_directory
require_space "$room" "$(awk -v mib="$mib" 'BEGIN { print mib / 1024 }')"
note_libraries ./benchio
touch begun
timeout -k 2 "$seconds" ./benchio 128 128 "$((8 * mib))" local proc fsync \
    --directory="$run_directory" --verify --min-seconds=1 --max-seconds="$((2 * seconds / 3))" \
    --result=result.jsonl --keep
inspect_run_directory $?
exit "$exit_status"
