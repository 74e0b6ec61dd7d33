# shellcheck shell=bash disable=SC2154
# Writes files once, which every round then reads; for job scripts that source pairs.sh, and
# bulk_lustre.sh if the layout names targets.

# before_run COMMAND...: writes the files that the command only reads.
before_run() {
    local word words=()
    [ ! -e "$run_directory.written" ] || return 0
    ! declare -F make_table >/dev/null || make_table || return
    for word; do
        [ "$word" != --no-write ] || word=--keep
        words+=("$word")
    done
    "${words[@]}" "${options[@]}" "$(place_option)" >>"$side.out" 2>&1 &&
        touch "$run_directory.written"
}
