# shellcheck shell=bash disable=SC2154
# The layout of the files as an argument of benchio, for job scripts that source pairs.sh and the
# script of a file system whose layouts name targets, which has list_stripes.

# number_of_files: set by the job script.
number_of_files=1

place_option() {
    echo "--layout=$run_directory.table"
}

# benchio wants the files to be there and empty; they keep their layout.
before_run() {
    if [ -e "$run_directory.table" ]; then
        find "$run_directory" -type f -exec truncate -s 0 {} +
    else
        make_table
    fi
}

# make_table: makes the files of a side, and the table that says where their stripes are.
make_table() {
    (cd "$run_directory" && seq -f '%06g' 1 "$number_of_files" | xargs touch) &&
        list_stripes | sort >"$run_directory.table"
}
