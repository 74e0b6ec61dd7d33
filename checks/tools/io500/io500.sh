# shellcheck shell=bash disable=SC2154
# Starts io500.sh, for job scripts that source job.sh and define `launch OPTION...`.

# measure PROGRAM: with io500.ini.in, in which directories are yet to be filled in. io500.sh runs
# where it lies, as it looks for its program beside it.
measure() {
    local ini=$PWD/io500.ini text
    text=$(<io500.ini.in)
    text=${text//@RUN_DIRECTORY@/"$run_directory"}
    echo "${text//@STAGE@/"$PWD"}" >"$ini"
    (cd "$(dirname "$(command -v "$1")")" && launch "$ini")
}
