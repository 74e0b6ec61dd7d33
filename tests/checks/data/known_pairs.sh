#!/bin/bash
# In place of checks/cases/scripts/untar.sh: it says of each pair how long it took, and waits for
# nothing, so that the ratios are known: 1.5, 2, 3, 1.8, 2 and 2.4.
for option; do
    case $option in
    --directory=*) directory=${option#*=} ;;
    --result=*) result=${option#*=} ;;
    esac
done
[ "$result" != "with-$BREAKS.jsonl" ] || { echo "iobands: untar: broken on purpose" >&2; exit 1; }
case ${result##*/} in
without-1.jsonl) seconds=0.45 ;;
without-2.jsonl) seconds=0.6 ;;
without-3.jsonl) seconds=0.9 ;;
without-4.jsonl) seconds=0.54 ;;
without-5.jsonl) seconds=0.6 ;;
without-6.jsonl) seconds=0.72 ;;
*) seconds=0.3 ;;
esac
head -c 2M /dev/zero > "$directory/file"
awk -v seconds="$seconds" 'BEGIN {
    printf "{\"schema\": \"benchio/4\", \"version\": \"1\", \"layer\": \"untar\", "
    printf "\"pattern\": \"untar\", \"interface\": \"posix\", \"operation\": \"write\", "
    printf "\"repeat\": 1, \"nodes\": 1, \"processes\": 1, \"bytes\": 2097152, \"files\": 1, "
    printf "\"fsync\": true, \"bandwidth_gib_s\": %.12f}\n", 2 / 1024 / seconds
}' > "$result"
