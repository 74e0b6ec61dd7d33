# shellcheck shell=bash
# Tries compilers, for the job script of EnvCompiler.

# try_compiler LANGUAGE SOURCE COMPILER...: prints the status and the first line that was printed.
try_compiler() {
    local language=$1 source=$2
    shift 2
    "$@" "$source" -o "empty-$language" >"$language.txt" 2>&1
    echo "iobands-compiler $language $? $*: $(head -n 1 "$language.txt")"
}

# build SOURCE PROGRAM COMPILER...: builds the program if that can be done.
build() {
    local source=$1 program=$2
    shift 2
    "$@" "$source" -o "$program" >"$program.txt" 2>&1 || :
}
