#!/bin/bash
# In place of checks/cases/untar/untar.sh: it takes a known time, and says how long it took.
seconds=0.6
for option; do
    case $option in
    --blocking-factor=*) seconds=0.3 ;;
    --directory=*) directory=${option#*=} ;;
    --result=*) result=${option#*=} ;;
    esac
done
[ "$result" != "with-$BREAKS.jsonl" ] || { echo "iobands: untar: broken on purpose" >&2; exit 1; }
start=$(date +%s%N)
sleep "$seconds"
head -c 2M /dev/zero > "$directory/file"
end=$(date +%s%N)
awk -v start="$start" -v end="$end" 'BEGIN {
    printf "{\"schema\": \"benchio/2\", \"version\": \"1\", \"layer\": \"untar\", "
    printf "\"pattern\": \"untar\", \"interface\": \"posix\", \"operation\": \"write\", "
    printf "\"repeat\": 1, \"nodes\": 1, \"processes\": 1, \"bytes\": 2097152, \"files\": 1, "
    printf "\"fsync\": true, \"bandwidth_gib_s\": %.9f}\n", 2 / 1024 / ((end - start) / 1e9)
}' > "$result"
