#!/bin/sh
# Tests heat as its users run it: known answers, the same plate for every number of ranks, frames, the
# live picture, wrong use. Needs a C compiler behind MPICC, libpng, and MPIEXEC; no terminal.
#
#   MPICC=mpicc MPIEXEC=mpiexec apps/heat/test.sh
#
# Every failure is one line; the exit status is 1 when there was any.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
    echo "heat test: FAILED: $*"
    failures=$((failures + 1))
}

# run RANKS OPTION...: starts heat, with a limit on its time.
run() {
    ranks=$1
    shift
    timeout 120 ${MPIEXEC:-mpiexec} -n "$ranks" ./heat "$@"
}

# same EXPECTED OPTION...: the checksum for 1, 2, 3, 4 and 8 ranks. The values below are those of IEEE
# double arithmetic in the order that plate.c prescribes: no machine or compiler has others.
same() {
    expected=$1
    shift
    for p in 1 2 3 4 8; do
        found=$(run $p --quiet --no-frames "$@" 2>&1)
        [ "$found" = "heat: checksum $expected" ] || fail "$p ranks, $*: '$found', not $expected"
    done
}

# refused RANKS TEXT OPTION...: exit status 2, and one line on standard error that contains TEXT.
refused() {
    ranks=$1
    text=$2
    shift 2
    run "$ranks" "$@" >out 2>err
    status=$?
    [ $status -eq 2 ] || fail "$*: exit status $status, not 2"
    [ ! -s out ] || fail "$*: wrote to standard output"
    [ "$(grep -c '^heat: ' err)" -eq 1 ] || fail "$*: not one line of complaint"
    grep -qF -e "$text" err || fail "$*: no '$text' in '$(cat err)'"
}

${MPICC:-mpicc} -O2 "$here"/*.c -o heat -lpng -lm || exit 1

for p in 1 2 3 4 8; do
    run $p --check >out 2>&1 || fail "known answers on $p ranks: $(grep -m1 WRONG out || cat out)"
    [ "$(grep -c ': ok$' out)" -eq 5 ] || fail "known answers on $p ranks: not 5 of them"
done
run 1 --check -n 1 >out 2>&1 || fail "known answers on one cell: $(grep -m1 WRONG out || cat out)"

same 32a3f17137ce82cb -n 64 --steps 500
same 2ccb8e4099fc9a61 -n 61 --steps 500
same 8239a375c08047b1 -n 8 --steps 77 --every 1
same d494f8494302bc37 -n 100 --steps 200 --start 10 --input "$here/weft.png"
same 7372612b27951265 -n 50 --steps 0 --north 10,20@50-100 --west=-3.5

run 2 --table --steps 20 >out 2>&1 || fail "--table: $(cat out)"
grep -q '^     1024 |' out || fail "--table: no line for 1024"

run 2 -n 32 --steps 50 --out frames >out 2>&1 || fail "frames: $(cat out)"
frames=$(cd frames && echo *)
[ "$frames" = "frame-00000000.png frame-00000020.png frame-00000040.png frame-00000050.png" ] ||
    fail "frames: $frames"
# A frame is itself an input: grey and colours are read, the size is taken from it.
run 1 --input frames/frame-00000050.png --steps 1 --no-frames >out 2>&1 || fail "a frame as input: $(cat out)"
grep -q '32 x 32 plate' out || fail "a frame as input: $(cat out)"

COLUMNS=60 LINES=20 run 2 -n 32 --steps 40 --no-frames --live >out 2>&1 || fail "--live: $(cat out)"
grep -q '▀' out || fail "--live: no half block"
grep -q '100 %  step 40 of 40' out || fail "--live: no full bar"

# Ended in the middle of a live picture, it leaves the cursor visible and dies of the signal.
mkfifo pipe
./heat -n 32 --steps 1000000 --fps 100 --no-frames --live >pipe 2>err &
pid=$!
exec 3<pipe
dd bs=1 count=3000 <&3 >/dev/null 2>&1
kill -TERM $pid
cat <&3 >out
exec 3<&-
wait $pid
status=$?
[ $status -eq 143 ] || fail "--live: exit status $status after TERM, not 143"
tail -c 20 out | grep -q '\[?25h' || fail "--live: cursor not restored after TERM"

refused 2 '-n 0: allowed is a whole number from 1 to 16384' -n 0
refused 2 '-n 12x' -n 12x
refused 1 '--every 0' --every 0
refused 1 '--steps -1' --steps=-1
refused 1 '--steps: a value must follow' --steps
refused 2 "unknown option '--frob'" --frob
refused 1 '--north 5@60-40: allowed is TEMPERATURE' --north 5@60-40
refused 1 '--east nan' --east nan
refused 1 '--start 1e9' --start 1e9
refused 1 '--input none.png: not read as a PNG picture' --input none.png
refused 1 '--input heat: not read as a PNG picture' --input heat
refused 1 '--out heat: not a directory' --out heat
refused 3 '3 ranks for 2 rows: allowed are 1 to 2 ranks' -n 2
refused 1 '--table measures n = 64 to 1024' --table -n 5

run 2 --help >out 2>err || fail "--help: exit status $?"
grep -q '^usage: heat' out && [ "$(grep -c '^usage' out)" -eq 1 ] || fail "--help: not printed once"

[ $failures -eq 0 ] && echo "heat test: all passed"
[ $failures -eq 0 ]
