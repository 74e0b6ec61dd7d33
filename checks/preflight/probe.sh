#!/bin/bash
# Examines file systems from a node, all at once, so that none can hold up the others.
#
#   probe.sh SECONDS [TYPE PATH NAMES DIRECTORY POOL]...
#
# NAMES are the types that the mount table may show, separated by commas; empty allows any. Only a
# file system of the right type is written to, in DIRECTORY, which is made and removed. The output
# about the Nth, a section for each command, is in file_system_N.txt, or with the suffix .part if it
# does not answer within SECONDS. Then the orphans in orphans_N.txt are removed. Last, probed.txt is
# written, with `silent N` for each that did not answer: without it the stage directory is at fault.
export LC_ALL=C

section() {
    echo "@@@ $1"
}

look() {
    local type=$1 names=$3 pool=$5 mounted kind group fits=
    file_system=$2 directory=$4
    needed=()
    # shellcheck source=/dev/null
    [ ! -e "./$type.sh" ] || source "./$type.sh"
    section node
    uname -n
    section mounted
    mounted=$(df --output=fstype,target -- "$file_system" 2>&1 | tail -n 1)
    echo "$mounted"
    kind=${mounted%% *}
    case ,$names, in ,, | *",$kind,"*) fits=yes ;; esac
    # About a missing path, df prints a line that begins with `df:`.
    if [ "$kind" = df: ] || [ -z "$fits" ]; then
        # A directory that is not made needs no removal.
        echo "$directory" >>removed_directories.txt
        return 0
    fi
    section "missing commands"
    for group in "${needed[@]}"; do
        has_one_of "$group" || echo "${group// / or }"
    done
    section space
    df -k --output=size,avail "$file_system" | tail -n 1
    section files
    df --output=itotal,iavail "$file_system" | tail -n 1
    section targets
    ! declare -F list_targets >/dev/null || list_targets "$pool" 2>/dev/null
    section quota
    ! declare -F show_quota >/dev/null || show_quota 2>/dev/null
    section directory
    make_directory || return 0
    ! declare -F look_at_targets >/dev/null || look_at_targets "$pool" 2>/dev/null
    section write
    write_a_file
}

make_directory() {
    local printed
    if ! printed=$(writable_by_others) && printed=$(make_marked "$directory" 2>&1); then
        directory=$printed
        trap 'remove_directory "$directory"' EXIT
        trap 'exit 143' TERM
    else
        section write
        echo "failed: $printed"
        return 1
    fi
}

write_a_file() {
    local before printed
    before=$(date +%s.%N)
    printed=$(echo iobands | dd of="$directory/file" conv=fsync status=none 2>&1)
    if [ "$(cat "$directory/file" 2>/dev/null)" = iobands ]; then
        echo "clock $before $(stat -c %.9Y "$directory/file") $(date +%s.%N)"
    else
        echo "failed: ${printed:-what was written did not come back}"
    fi
}

# shellcheck source=checks/base/job.sh
source ./job.sh || exit 1
seconds=$1
shift
for ((number = 0; $# > 0; number++)); do
    answer=file_system_$number.txt
    # No output to this script's, as its reader would wait for processes that hang.
    {
        (look "$@") >"$answer.part" 2>&1 && mv "$answer.part" "$answer" &&
            [ -e "orphans_$number.txt" ] &&
            xargs -0 sh ./remove.sh <"orphans_$number.txt" >"removed_$number.txt"
    } </dev/null >/dev/null 2>&1 &
    pids[number]=$!
    shift 5
done
for ((waits = 0; waits < 5 * seconds; waits++)); do
    [ -n "$(jobs -r)" ] || break
    sleep 0.2
done
{
    for number in "${!pids[@]}"; do
        ! kill -0 "${pids[number]}" 2>/dev/null || echo "silent $number"
    done
    echo end
} >probed.txt
exit 0 # without waiting for processes that hang
