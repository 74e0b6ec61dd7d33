# shellcheck shell=bash disable=SC2034,SC2154
# Runs both settings of a comparison in one job, in turn; for job scripts that source job.sh.
#
# Each side, `without` and `with`, has its own directories below $run_directory and the stage
# directory. The job script sets the arguments and variables in which the sides differ:
options_without=()
options_with=()
environment_without=()
environment_with=()

# make_side SIDE: makes the directories of a side; commands that stripe it follow in a subshell.
make_side() {
    mkdir "$run_directory/$1" && mkdir -p "$1" || exit 1
}

enter_side() {
    run_directory=$run_directory/$1
    cd "$1" || exit 1
}

# run_pairs PAIRS COMMAND...: the sides take turns to begin, so that a drift of the file system
# affects both.
run_pairs() {
    local pairs=$1 pair side order
    shift
    for ((pair = 1; pair <= pairs; pair++)); do
        order="without with"
        [ $((pair % 2)) -eq 1 ] || order="with without"
        for side in $order; do
            (run_side "$side" "$pair" "$@") || return
        done
    done
}

run_side() {
    local side=$1 pair=$2
    local -n options=options_$side environment=environment_$side
    shift 2
    run_directory=$run_directory/$side
    [ "${#environment[@]}" -eq 0 ] || export "${environment[@]}"
    before_run "$@" || exit
    "$@" "${options[@]}" "$(place_option)" --result="$side-$pair.jsonl" 2>&1 | tee -a "$side.out"
    exit "${PIPESTATUS[0]}"
}

# A case may redefine before_run and place_option; before_run gets the command as its arguments.
before_run() {
    :
}

place_option() {
    echo "--directory=$run_directory"
}

# inspect_side SIDE: lists the files of a side, and their striping.
inspect_side() (
    run_directory=$run_directory/$1
    find "$run_directory" -type f -printf '%s %f\n' >"$1-files.txt"
    cd "$1" || exit
    ! declare -F read_layout >/dev/null || read_layout
)
