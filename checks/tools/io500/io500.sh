# shellcheck shell=bash disable=SC2154
# Starts io500.sh, for job scripts that source job.sh and define `launch OPTION...`.

# measure PROGRAM: fills in the directories of io500.ini.in. io500.sh runs in its own directory, as it
# looks for its program there.
measure() {
    local ini=$PWD/io500.ini text
    text=$(<io500.ini.in)
    text=${text//@RUN_DIRECTORY@/"$run_directory"}
    echo "${text//@STAGE@/"$PWD"}" >"$ini"
    (cd "$(dirname "$(command -v "$1")")" && launch "$ini")
}
