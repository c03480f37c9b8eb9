# Runs on a host of a job: starts an agent from the Weft that is installed there, or else from a copy of the launcher's.
# Joined into one line (see mod.rs) and given to sh -c; some login shell reads it first. So every line is whole, and
# there is no single quote, backslash or exclamation mark here.
#
# PROGRAM NAME SUM LIBRARIES MACHINE TOTAL, then FILE and BYTES of each file that is to be copied, in their order.
test $# -ge 6 || { echo "the launch command does not keep the words together that it passes on" >&2; exit 1; };
program=$1; name=$2; sum=$3; libraries=$4; machine=$5; total=$6; shift 6;
say() { echo "$*" >&2; };

# Whether this program, with the libraries beside it, is the one that is wanted.
fits() { test -x "$1" && test "$("$1" checksum </dev/null 2>/dev/null)" = "$sum"; };
if fits "$program"; then exec "$program" agent; fi;

cache=${XDG_CACHE_HOME:-${HOME:?is not set, and nor is XDG_CACHE_HOME: there is no place for a copy of weft}/.cache}/weft;
place=$cache/$name;

# In a subshell, which ends with this: nothing half is left.
clean() { rm -rf "$new"; };
stage() {
test "$(uname -m)" = "$machine" || { say "its processor is $(uname -m), this weft is made for $machine"; return 1; };
mkdir -p "$place/bin" "$place/lib" || return 1;
# Of copies whose host was killed.
find "$place" -maxdepth 1 -name "new.*" -mmin +60 -exec rm -rf {} + 2>/dev/null;
new=$(mktemp -d "$place/new.XXXXXX") || return 1;
trap clean EXIT; trap "exit 1" HUP INT TERM PIPE;
mkdir "$new/bin" "$new/lib" || return 1;
# What the launcher waits for.
echo "weft-stg$place";
head -c "$total" >"$new/all" || return 1;
bytes=$(wc -c <"$new/all");
test "$bytes" -eq "$total" || { say "only $bytes of $total bytes of weft have come"; return 1; };
at=1; files=;
while test $# -gt 1; do
tail -c "+$at" "$new/all" | head -c "$2" >"$new/$1" && chmod 700 "$new/$1" || return 1;
files="$files $1"; at=$((at + $2)); shift 2;
done;
rm -f "$new/all";
if fits "$new/bin/weft"; then :; else
say "the copy in $new does not run there: $("$new/bin/weft" checksum </dev/null 2>&1)"; return 1;
fi;
# Where the cache is one of several hosts, another one may be as far, and run already what it has put there: that stays.
for file in $files; do ln "$new/$file" "$place/$file" 2>/dev/null; done;
if fits "$place/bin/weft"; then return 0; fi;
for file in $files; do cmp -s "$new/$file" "$place/$file" || mv -f "$new/$file" "$place/$file" || return 1; done;
if fits "$place/bin/weft"; then return 0; fi;
say "the copy in $place is not what it should be"; return 1;
};
if fits "$place/bin/weft"; then :; else ( umask 077; stage "$@" ) || exit 1; fi;
exec "$place/bin/weft" agent --in-place-of "$libraries";
