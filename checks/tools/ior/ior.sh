# shellcheck shell=bash disable=SC2154
# The launches of IOR, for job scripts that source job.sh and define `launch OPTION...`.

# The options of every launch, and of writes only.
ior_options=()
write_options=()

# keep_rank_times PROGRAM FILE: writes record the times of their ranks, with IOR 4.0 or later. An
# earlier version does not know the option and ends.
keep_rank_times() {
    ! grep -q saveRankPerformanceDetailsCSV "$(command -v "$1")" ||
        write_options+=(-O "saveRankPerformanceDetailsCSV=$2")
}

# measure REPEATS: each is a write, a read, and a verification outside the measured time. A last
# launch reads with a wrong signature, and must report errors.
measure() {
    local repeat
    for ((repeat = 1; repeat <= $1; repeat++)); do
        measure_once "$repeat" "$1" || return
    done
}

measure_once() {
    local signature=$((RANDOM * 32768 + RANDOM + 1))
    phase write "$1" "${write_options[@]}" -w -G "$signature" || return
    leave_page_cache "$1"
    phase read "$1" -r -G "$signature" || return
    check verify "$1" "$signature" || return
    [ "$1" -lt "$2" ] || check control "$1" "$((signature + 1))"
}

# check NAME REPEAT SIGNATURE: reads and compares; wrong data does not end the job here.
check() {
    local status
    phase "$1" "$2" -r -R -G "$3" >"ior-$1-$2.out" 2>&1
    status=$?
    echo "$status" >"ior-$1-$2.status"
    # 143: the time limit is near, and the end of the script needs the remaining time.
    [ "$status" -ne 143 ] || return "$status"
}

# phase NAME REPEAT OPTION...
phase() {
    local file=ior-$1-$2.json
    shift 2
    launch "${ior_options[@]}" "$@" -O "summaryFile=$file"
}

# leave_page_cache REPEAT: each node drops the files from its page cache, and counts the remaining
# pages; 0 is the proof. Without these commands, or on a file system in memory, there is no proof.
leave_page_cache() {
    # shellcheck disable=SC2016
    on_each_node "pages-$1.txt" sh -c '
        find "$1" -type f -exec dd if={} iflag=nocache count=0 \;
        find "$1" -type f -exec fincore --noheadings --bytes --output PAGES {} +
        echo node' sh "$run_directory"
}
