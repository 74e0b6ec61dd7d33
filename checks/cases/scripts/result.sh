# shellcheck shell=bash
# Common parts of the cases' scripts; each is called as `SCRIPT ... --directory=PATH --result=FILE`.

fail() {
    echo "iobands: ${0##*/}: $*" >&2
    exit 1
}

# write_result FILE OPERATION VERSION FIELD=VALUE...: in benchio's form (docs/contracts.md), one phase; a
# value is a number or true.
write_result() {
    local file=$1 operation=$2 version=$3 fields="" field name
    shift 3
    for field; do
        fields+=", \"${field%%=*}\": ${field#*=}"
    done
    name=${0##*/}
    name=${name%.sh}
    echo "{\"schema\": \"benchio/4\", \"version\": \"$version\", \"layer\": \"$name\"," \
        "\"pattern\": \"$name\", \"interface\": \"posix\", \"operation\": \"$operation\"," \
        "\"repeat\": 1, \"nodes\": 1, \"processes\": 1, \"hints\": {}$fields}" >"$file"
}

# gib_s BYTES BEGIN END, seconds BEGIN END, a_second NUMBER BEGIN END: times in nanoseconds.
gib_s() {
    awk -v n="$1" -v begin="$2" -v end="$3" 'BEGIN { printf "%.9g", n / 2 ^ 30 / (end - begin) * 1e9 }'
}

seconds() {
    awk -v begin="$1" -v end="$2" 'BEGIN { printf "%.9f", (end - begin) / 1e9 }'
}

a_second() {
    awk -v n="$1" -v begin="$2" -v end="$3" 'BEGIN { printf "%.9g", n / (end - begin) * 1e9 }'
}
