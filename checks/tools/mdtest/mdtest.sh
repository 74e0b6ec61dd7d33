# shellcheck shell=bash disable=SC2154
# The launches of mdtest, for job scripts that source job.sh and define `launch OPTION...`.

# The options of every launch, the number of the last process, and whether reads compare data.
mdtest_options=()
last_process=0
verifies=

# measure REPEATS: creates, stats, reads and removes, each phase in a separate launch. Before the
# last removal a file is spoilt and read again, and mdtest must report it.
measure() {
    local repeat tree=$run_directory/tree
    require_seed
    for ((repeat = 1; repeat <= $1; repeat++)); do
        measure_once "$repeat" "$1" || return
    done
}

measure_once() {
    phase create "$1" -C || return
    phase stat "$1" -T || return
    phase read "$1" -E ${verifies:+-X} || return
    if [ "$1" -eq "$2" ]; then
        read_one_layout
        [ -z "$verifies" ] || read_a_spoilt_file "$1" || return
    fi
    phase remove "$1" -r
}

# Without -G, each launch of 4.x draws new data. 3.3 lacks this option, and reports wrong data only
# in the files of the first process.
require_seed() {
    launch -h >help.txt 2>&1
    if grep -q '^ *-G=' help.txt; then
        mdtest_options+=(-G $((RANDOM + 1)))
    elif [ -n "$verifies" ] && grep -q verify-read help.txt; then
        echo "iobands: this mdtest does not verify the files of all processes"
        exit 0
    fi
}

# phase NAME REPEAT OPTION...: marks where the phase begins in the output, and its number of files.
phase() {
    echo "== phase $1 $2"
    shift 2
    launch "$@" "${mdtest_options[@]}" -d "$tree" || return
    echo "== files $(find "$tree" -type f | wc -l)"
}

# read_a_spoilt_file REPEAT: a file of the last process, as some versions check only the first one's.
read_a_spoilt_file() {
    local file
    file=$(find "$tree" -type f -name "file.mdtest.$last_process.*" | head -n 1)
    printf spoilt | dd of="$file" conv=notrunc bs=1 seek=8 2>/dev/null
    echo "== phase control $1"
    launch -E -X "${mdtest_options[@]}" -d "$tree"
    local status=$?
    # As in ior.sh, the time limit is near.
    [ "$status" -ne 143 ] || return "$status"
}

# The layout of one file, as the layout of all would take long.
read_one_layout() {
    local file sample=$run_directory/sample
    declare -F read_layout >/dev/null || return
    file=$(find "$tree" -type f | head -n 1)
    mkdir "$sample" && mv "$file" "$sample"
    (run_directory=$sample read_layout)
    mv "$sample/${file##*/}" "$file" && rmdir "$sample"
}
