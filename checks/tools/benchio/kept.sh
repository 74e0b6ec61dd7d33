# shellcheck shell=bash
# Keeps the build of benchio in the site's directory, for later sessions and for `iobands canary`.
# The build script sources this. The directory of a build is named after its key, a hash of all that
# decides what is built. A failure here is named in a line `iobands: ...`, and costs a new build.

#: The files of a kept build, whose checksums are in SHA256SUMS.
kept_files=(benchio build.out environment identity libraries)
kept=
key=

# take_kept_build PROGRAM COMPILER...: puts a kept build in the place of PROGRAM; fails without one.
take_kept_build() {
    local given program=$1 work each
    shift
    { read -r builds && read -r user && read -r purpose && read -r given; } <kept-build.txt || return
    work=$(mktemp -d ./kept.XXXXXXXXXX) || return
    { echo "$given" && identify "$@"; } >"$work/now" 2>&1
    key=$(sha256sum <"$work/now" | cut -c 1-32)
    usable_builds || return
    kept=$builds/$key
    [ -d "$kept" ] || return
    # Verifies the copy, which nobody can change between verification and use.
    for each in "${kept_files[@]}" SHA256SUMS; do
        cp -- "$kept/$each" "$work" || {
            said "the kept benchio $key is damaged: it is built anew"
            return 1
        }
    done
    if ! (cd -- "$work" && sha256sum -- "${kept_files[@]}" | cmp -s - SHA256SUMS &&
        cmp -s now identity); then
        said "the kept benchio $key was damaged or replaced: it is built anew"
        return 1
    fi
    chmod 0700 "$work/benchio"
    if ! libraries_of "$work/benchio" | cmp -s - "$work/libraries"; then
        said "the libraries of the kept benchio $key have changed: it is built anew"
        return 1
    fi
    mkdir -p -- "${program%/*}" && mv -- "$work/benchio" "$program" || return
    cat "$work/build.out"
    echo "benchio $key: the kept build, whose checksums match, is used"
    use_kept_build
}

# keep_build PROGRAM OUTPUT: keeps what was built; never fails, so that the session goes on.
keep_build() {
    local work output=$2
    usable_builds && [ -f "$1" ] || return 0
    work=$(mktemp -d -- "$builds/.new.XXXXXXXXXX" 2>/dev/null) || {
        said "benchio is not kept: $builds cannot be written"
        return 0
    }
    {
        cp -- "$1" "$work/benchio" && cp -- "$output" "$work/build.out" &&
            cp -- kept.*/now "$work/identity" && libraries_of "$1" >"$work/libraries" &&
            environment_of_build >"$work/environment" && cd -- "$work" &&
            sha256sum -- "${kept_files[@]}" >SHA256SUMS && sync -- SHA256SUMS benchio &&
            cd -- "$OLDPWD"
    } 2>/dev/null || {
        said "benchio is not kept: it cannot be written to $builds"
        rm -rf -- "$work"
        return 0
    }
    # A build in this place is damaged, or was just kept by another session: move it away.
    [ ! -e "$kept" ] || mv -T -- "$kept" "$builds/.old.${work##*.}" 2>/dev/null
    mv -T -- "$work" "$kept" 2>/dev/null || rm -rf -- "$work"
    rm -rf -- "$builds/.old.${work##*.}"
    use_kept_build
    return 0
}

# use_kept_build: makes it the canary's build, and removes builds that no session used for a month.
# The canary gets the build of scheduled sessions, not one that somebody tries out.
use_kept_build() {
    touch -c -- "$kept" 2>/dev/null
    if [ "$purpose" = scheduled ] || [ ! -e "$builds/$user" ]; then
        { echo "$key" >"$builds/.key.$$" && mv -f -- "$builds/.key.$$" "$builds/$user"; } 2>/dev/null
    fi
    find "$builds" -mindepth 1 -maxdepth 1 -type d ! -name "$key" -mtime +30 -exec rm -rf -- {} + \
        2>/dev/null
    return 0
}

# usable_builds: makes $builds; refuses it if anybody else could have put a program there.
usable_builds() {
    [ -d "$builds" ] || mkdir -m 0700 -- "$builds" 2>/dev/null || return
    local found
    found=$(stat -c '%F %u %a' -- "$builds") || return
    [ "$found" = "directory $(id -u) 700" ] ||
        { said "no build is kept: $builds must be your own directory, of mode 0700" && return 1; }
}

said() {
    echo "iobands: $*" >&2
}

# identify COMPILER...: prints what decides on a build besides its source and its commands.
identify() {
    local name path
    uname -sm
    grep -m 1 -E '^(flags|Features)' /proc/cpuinfo
    for name in cmake "$@"; do
        path=$(command -v -- "$name") || continue
        stat -L -c '%n %s %Y' -- "$(readlink -f -- "$path")"
        "$name" --version
    done
    # A package that was installed or upgraded changes a directory.
    stat -L -c '%n %Y' /usr/include /usr/lib /usr/lib64 /usr/lib/*-linux-gnu /usr/local/include \
        /usr/local/lib /usr/local/lib64
    env | LC_ALL=C sort | grep -E "^($build_variables)="
}
build_variables='PATH|CPATH|(LD_)?LIBRARY_PATH|(CMAKE|PKG_CONFIG|CRAY|PE|OMPI|MPICH|I_MPI|MPI|HDF5)_\w+'
build_variables+='|(NETCDF|PNETCDF|ADIOS2)\w*|LOADEDMODULES|\w*FLAGS|CC|CXX|FC|F77|F90'

# libraries_of PROGRAM: the libraries that it is linked with, their sizes and times.
libraries_of() {
    ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | LC_ALL=C sort | xargs -r stat -L -c '%n %s %Y' --
}

# environment_of_build: prints the variables that were set since the script began, as by modules.
environment_of_build() {
    env -0 | LC_ALL=C sort -z >kept.env.now
    LC_ALL=C sort -z "/proc/$$/environ" | LC_ALL=C comm -z -13 - kept.env.now |
        grep -zvE '^(_|SHLVL|PWD|OLDPWD|BASH_FUNC_.*)='
    rm -f kept.env.now
}
