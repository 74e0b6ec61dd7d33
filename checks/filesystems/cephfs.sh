# shellcheck shell=bash disable=SC2034,SC2154
# CephFS, for job scripts and for the probe: both set file_system before they call anything.

needed=(setfattr getfattr)

# Ceph ends its output without a line break, and the next section of the probe would join it.
list_targets() {
    timeout 20 ceph osd stat --format json && echo
}

# require_targets COUNT [KNOWN]: sets $targets to KNOWN, the number in the site file, else to the
# number of OSDs that are up. Ends the job if a file cannot have COUNT stripes; -1 stands for all.
require_targets() {
    targets=${2:-$(sed -n 's/.*"num_up_osds": *\([0-9]*\).*/\1/p' targets.txt)}
    [ -n "$targets" ] ||
        refuse "stripe count requested: ${1/#-1/all OSDs}; how many are up cannot be seen here with" \
            "ceph osd stat: set targets in the site file's striping"
    [ "$targets" -ge "$1" ] || refuse "stripe count requested: $1; there are $targets OSDs up"
}

# stripe ATTRIBUTE=VALUE...: all at once, as the size of a stripe is checked against an object's.
stripe() {
    or_refuse "Ceph refused the requested layout (a client needs the capability p)" \
        setfattr -n ceph.dir.layout -v "$*" "$run_directory"
}

read_layout() {
    find "$run_directory" -type f -exec \
        getfattr --absolute-names -n ceph.file.layout {} + >layout.txt 2>&1
}

# list_stripes BYTES: for each file `path stripe_unit osd ...`, with an OSD for each stripe of BYTES
# bytes: the primary OSD of the object with the stripe, which serves reads and writes. A hash of the
# object's name determines it, whether or not the object exists.
list_stripes() {
    read_layout
    find "$run_directory" -type f -printf '%p %i\n' | while read -r path inode; do
        printf '%s %x\n' "$path" "$inode"
    done | list_objects "$1" >objects.txt
    place_objects <objects.txt >osds.txt
    awk '
        FILENAME == "osds.txt" { osd[$1] = $2; next }
        !($6 in osd) { exit }
        $1 != path { if (path) print ""; path = $1; printf "%s %s", path, $2 }
        { printf " %s", osd[$6]; found++ }
        END { if (path) print ""; exit !found || found < FNR }' osds.txt objects.txt ||
        refuse "getfattr and ceph osd map do not show here on which OSDs stripes lie"
}

# list_objects BYTES: a line `path stripe_unit stripe pool namespace object` for each stripe of each
# file, from lines of path and inode; - stands for no namespace. Stripes are placed round-robin on
# the stripe_count objects of a set until these are full.
list_objects() {
    awk -v bytes="$1" '
        NR == FNR && /^# file: / { path = $3; next }
        NR == FNR && sub(/^ceph.file.layout="/, "") { sub(/"$/, ""); layout[path] = $0 }
        NR == FNR { next }
        {
            split("", value)
            number = split(layout[$1], words, " ")
            for (at = 1; at <= number; at++) {
                split(words[at], pair, "=")
                value[pair[1]] = pair[2]
            }
            if (!(unit = value["stripe_unit"])) exit 1
            count = value["stripe_count"]
            namespace = "pool_namespace" in value ? value["pool_namespace"] : "-"
            of_a_set = count * value["object_size"] / unit
            for (stripe = 0; stripe * unit < bytes; stripe++) {
                object = int(stripe / of_a_set) * count + stripe % count
                printf "%s %s %d %s %s %s.%08x\n", $1, unit, stripe, value["pool"], namespace, $2, object
            }
        }' layout.txt -
}

# place_objects: `object osd` for each object of the input. One call of ceph answers many questions,
# in about 50 ms each, so several calls run at a time.
# shellcheck disable=SC2016
place_objects() {
    local answers
    answers=$(mktemp -d -p .) || return
    awk '{ print "osd map", $4, $6, $5 == "-" ? "" : $5 }' | sort -u |
        xargs -r -d '\n' -n 500 -P "$(nproc)" sh -c \
            'answers=$1; shift; printf "%s\n" "$@" | timeout 300 ceph >"$answers/$$"' sh "$answers"
    find "$answers" -type f -exec sed -n \
        "s|.* object '\(.*/\)\{0,1\}\([^/']*\)' .* acting (\[.*\], p\([0-9]*\))\$|\2 \3|p" {} +
    rm -r "$answers"
}

# The quotas of the directory, and of all directories above it on the same file system.
show_quota() {
    local directory=$file_system mount_point unit limit used
    mount_point=$(df --output=target "$file_system" | tail -n 1)
    while [ "$(df --output=target "$directory" | tail -n 1)" = "$mount_point" ]; do
        for unit in bytes files; do
            limit=$(attribute "ceph.quota.max_$unit" "$directory") || limit=0
            used=$(attribute "ceph.dir.r$unit" "$directory") || continue
            echo "quota-of $unit $limit $used"
        done
        [ "$directory" != / ] || break
        directory=$(dirname "$directory")
    done
}

attribute() {
    getfattr --absolute-names --only-values -n "$1" "$2"
}
