# shellcheck shell=bash disable=SC2154
# Makes the archive to unpack, for job scripts that source job.sh.

# make_archive FILES MIB: FILES files of random bytes, so that no file system can compress them.
make_archive() {
    local number packed=$run_directory/packed
    mkdir "$packed" || exit 1
    for ((number = 1; number <= $1; number++)); do
        head -c "$2M" /dev/urandom >"$packed/file$number" || exit 1
    done
    # Only the files, as on CephFS a directory may still change while it is archived.
    (cd "$packed" && tar -c -f ../archive.tar file*) || exit 1
    rm -r -- "$packed" && sync "$run_directory/archive.tar"
}
