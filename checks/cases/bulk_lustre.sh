# shellcheck shell=bash disable=SC2154
# The layout of the files as an argument of benchio, for job scripts that source pairs.sh and the
# script of a file system, which has list_stripes.

# Set by the job script.
number_of_files=1
bytes_per_file=0

place_option() {
    echo "--layout=$run_directory.table"
}

# benchio needs existing, empty files; they keep their layout.
before_run() {
    if [ -e "$run_directory.table" ]; then
        find "$run_directory" -type f -exec truncate -s 0 {} +
    else
        make_table
    fi
}

# make_table: makes the files of a side, and the table with the places of their stripes. scans.txt
# gets the number of examined files, and the start and the end in ns.
make_table() {
    local table start
    (cd "$run_directory" && seq -f '%06g' 1 "$number_of_files" | xargs touch) || return
    start=$(date +%s%N)
    table=$(list_stripes "$bytes_per_file") || return
    echo "$number_of_files $start $(date +%s%N)" >>scans.txt
    sort <<<"$table" >"$run_directory.table"
}
