# shellcheck shell=bash disable=SC2034,SC2154
# Lustre, for job scripts and for the probe: both set file_system before they call anything.

needed=(lfs)

list_targets() {
    timeout 20 lfs osts "$file_system"
}

# stripe OPTION...: of lfs setstripe.
stripe() {
    or_refuse "Lustre did not take the layout asked for" lfs setstripe "$@" "$run_directory"
}

# One call for thousands of files, in the form that names each: that of YAML does not.
read_layout() {
    find "$run_directory" -type f -exec lfs getstripe {} + >layout.txt 2>&1
}

# client_statistics FILE_SYSTEM: what the client on this node has moved. The name of its part of the
# file system differs from node to node.
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
