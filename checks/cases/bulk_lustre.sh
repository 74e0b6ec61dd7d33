# shellcheck shell=bash disable=SC2154
# The layout of the files as an argument of benchio, for job scripts that source pairs.sh.

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
        (cd "$run_directory" && seq -f '%06g' 1 "$number_of_files" | xargs touch) && list_stripes
    fi
}

# For each file `path stripe_size ost ...`, from `lfs getstripe` of files with a plain layout.
list_stripes() {
    find "$run_directory" -type f | sort | xargs lfs getstripe | awk '
        /^[^[:space:]]/ && NF == 1 { if (osts) print path, size osts; path = $1; osts = "" }
        /stripe_size/ { size = $2 }
        $1 ~ /^[0-9]+$/ { osts = osts " " $1 }
        END { if (osts) print path, size osts }' >"$run_directory.table"
}
