#!/bin/bash
# Makes empty files in a new directory, and lists them: only names, or with the details of `ls -l`.
# The same node makes and lists them, so its memory may answer in place of the file system.
#
#   listing.sh FILES listing [--names] --directory=PATH --result=FILE
# shellcheck disable=SC2010,SC2012 # what is measured is ls itself
set -u
# shellcheck source=checks/cases/scripts/result.sh
. "${0%/*}/result.sh"

files=$1
shift 2
long=(-l)
for option; do
    case $option in
    --names) long=() ;;
    --directory=*) directory=${option#*=} ;;
    --result=*) result=${option#*=} ;;
    *) fail "unknown option $option" ;;
    esac
done

find "$directory" -mindepth 1 -delete || fail "$directory cannot be emptied"
mkdir "$directory/new" || fail "$directory cannot be written to"
for ((n = 1; n <= files; n++)); do
    : >"$directory/new/$n" || fail "$directory cannot be written to"
done
start=$(date +%s%N)
listed=$(ls "${long[@]}" "$directory/new" | grep -c -v '^total') || fail "ls listed nothing"
end=$(date +%s%N)
write_result "$result" list "$(ls --version | head -n 1)" bytes=0 files="$listed" \
    seconds="$(seconds "$start" "$end")" rate="$(a_second "$listed" "$start" "$end")"
