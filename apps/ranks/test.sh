#!/bin/sh
# Tests a program that is built with ranks.h as its users build and run it, with MPI and with PVM: it must find the known
# answer, and say the same and write the same picture for every number of ranks.
#
#   MPICC=mpicc PVMCC="cc $(pkg-config --cflags --libs weft-pvm)" RUN="weft run" apps/ranks/test.sh is
#
# Every failure is one line; the exit status is 1 when there was any.
set -u
name=$1
apps=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
# Each test has a virtual machine of its own.
export PVM_VMID=test-$$

fail() {
    echo "$name test: FAILED: $*"
    failures=$((failures + 1))
}

# right WHAT COMMAND...: it ends well, and what it says but for the time is what `expected` has.
right() {
    what=$1
    shift
    timeout 60 "$@" >out 2>err || fail "$what: exit status $?: $(cat out err)"
    sed '$s/, [0-9]* rank.* s: /: /' out >said
    [ -e expected ] || cp said expected
    cmp -s said expected || fail "$what: said '$(cat said)', not '$(cat expected)'"
    tail -n 1 said | grep -q ': right$' || fail "$what: '$(cat said)'"
}

# same WHAT: the picture is that of the first run.
same() {
    [ -e picture ] || cp this picture
    cmp -s this picture || fail "$1: another picture"
}

flags="-O3 -Wall -Wextra -Werror -I $apps/ranks"
compiler=${PVMCC:-cc -lpvm3}
${MPICC:-mpicc} $flags "$apps/$name"/*.c "$apps/ranks"/*.c "$apps/ranks/mpi"/*.c -lm -o mpi || exit 1
# The libraries stand behind the sources.
${compiler%% *} $flags "$apps/$name"/*.c "$apps/ranks"/*.c "$apps/ranks/pvm"/*.c ${compiler#* } -lm -o pvm || exit 1

options=$(timeout 60 ./mpi --help) || fail "--help: exit status $?"
case $options in *--picture*) picture='--picture this' ;; *) picture= ;; esac
# The option of the program's own is the one with a WORD.
own=$(echo "$options" | sed -n 's/^ *\(--[a-z]*\) WORD .*/\1/p')
for word in '' $(echo "$options" | sed -n 's/.* WORD .* one of //p'); do
    rm -f expected picture
    for ranks in 1 2 3 4; do
        for build in mpi pvm; do
            right "$build on $ranks ranks $word" ${RUN:-weft run} -n $ranks ./$build ${word:+$own $word} $picture
            [ -z "$picture" ] || same "$build on $ranks ranks $word"
        done
    done
done
rm -f expected
right "one rank without a launcher" ./mpi
right "tasks that are spawned" ./pvm --tasks 3

refused=$(${RUN:-weft run} -n 2 ./mpi --class Z 2>&1) && fail '--class Z: not refused'
echo "$refused" | grep -q "^$name: --class Z: allowed is " || fail "--class Z: '$refused'"

[ $failures -eq 0 ] && echo "$name test: all passed"
[ $failures -eq 0 ]
