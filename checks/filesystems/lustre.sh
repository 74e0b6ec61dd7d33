# shellcheck shell=bash disable=SC2034,SC2154
# Lustre, for job scripts and for the probe: both set file_system before they call anything.

needed=(lfs)

# list_targets [POOL]: prints all targets, and the members of the pool.
list_targets() {
    within 20 lfs osts "$file_system"
    [ -z "${1-}" ] || list_pool "$1"
}

# -l does not wait for targets that are gone: killed by the timeout, lfs df would print nothing.
list_space() {
    within 10 lfs df -l "$file_system"
}

list_pool() {
    local client
    client=$(timeout 10 lfs getname "$file_system" | cut -d " " -f 1)
    within 10 lfs pool_list "${client%-*}.$1"
}

# look_at_targets [POOL]: for the probe, in its sections, below $directory: states of targets, the
# layout of a file over all that take files, and how a write to each of its stripes ended. It waits
# a third of $seconds for writes that hang.
look_at_targets() {
    local file=$directory/all-targets stripes written indices good pool
    section "target space"
    list_space
    section "target check"
    timeout 10 lfs check osts 2>&1
    section "target files"
    timeout 10 lfs setstripe -c -1 -S 64k ${1:+-p "$1"} "$file" 2>&1 | head -n 1
    timeout 10 lfs getstripe "$file" 2>&1
    stripes=$(timeout 10 lfs getstripe -c "$file")
    [[ $stripes =~ ^[0-9]+$ ]] || return 0
    written=$(seq 0 $((stripes - 1)) |
        timeout $((seconds / 3)) xargs -P 16 -I % \
            bash -c "$(declare -f write_stripe); write_stripe \"\$1\" %" bash "$file")
    echo "$written"
    # Place the small file of the probe on a target that does not hang.
    mapfile -t indices < <(timeout 10 lfs getstripe "$file" | awk '$3 ~ /^0x/ { print $1 }')
    good=$(awk '$1 == "wrote" { print $2; exit }' <<<"$written")
    [ -z "$good" ] || timeout 10 lfs setstripe -c 1 -i "${indices[good]}" \
        ${1:+-p "$1"} "$directory/file" >/dev/null
    pool=$(timeout 10 lfs getstripe -p "$file")
    [ -z "$pool" ] || { section "target pool" && list_pool "$pool"; }
}

write_stripe() {
    local printed
    if printed=$(dd if=/dev/zero of="$1" bs=64k count=1 seek="$2" oflag=direct conv=notrunc \
        status=none 2>&1); then
        echo "wrote $2"
    else
        echo "failed $2 ${printed##*: }"
    fi
}

# stripe OPTION...: options of lfs setstripe.
stripe() {
    or_refuse "Lustre refused the requested layout" lfs setstripe "$@" "$run_directory"
}

# One call for thousands of files, in the form that names each file; the YAML form does not.
read_layout() {
    find "$run_directory" -type f -exec lfs getstripe {} + >layout.txt 2>&1
}

# For each file with a plain layout: `path stripe_size ost ...`.
list_stripes() {
    read_layout
    awk '
        /^[^[:space:]]/ && NF == 1 { if (osts) print path, size osts; path = $1; osts = "" }
        /stripe_size/ { size = $2 }
        $1 ~ /^[0-9]+$/ { osts = osts " " $1 }
        END { if (osts) print path, size osts }' layout.txt
}

# client_statistics FILE_SYSTEM: the counters of the client on this node. The client's name in llite
# differs from node to node.
client_statistics() {
    local client
    client=$(lfs getname "$1" | cut -d " " -f 1) && lctl get_param -n "llite.$client.stats"
}

show_quota() {
    local project
    timeout 10 lfs quota -q -u "$(id -un)" "$file_system"
    timeout 10 lfs quota -q -g "$(id -gn)" "$file_system"
    project=$(timeout 10 lfs project -d "$file_system" | awk '{ print $1 }')
    [ "${project:-0}" -eq 0 ] || timeout 10 lfs quota -q -p "$project" "$file_system"
}
