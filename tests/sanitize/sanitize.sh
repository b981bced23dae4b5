#!/bin/bash
# SPDX-License-Identifier: MIT
# sanitize.sh SOURCE BUILD SANITIZERS MAIN_BUILD
# Builds tools and unit tests with the sanitizers, runs the unit tests, then the command itself on
# real, cut off and damaged profiles: whatever it says, no sanitizer may speak up. The sanitizer of
# threads looks at what has threads only.
set -euo pipefail
source=$1 build=$2 sanitizers=${3//,/;} main=$4
# A request for more memory than there is fails, as it does without them.
export ASAN_OPTIONS=detect_leaks=1:exitcode=77:allocator_may_return_null=1
export TSAN_OPTIONS=exitcode=77:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:exitcode=77
targets=(all) tests=()
[ "$sanitizers" != thread ] || targets=(memtrace_command threaded_tests) tests=(-L threads)

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMEMTRACE_TESTS=ON \
    "-DMEMTRACE_SANITIZE=$sanitizers" >"$build.log" || { cat "$build.log"; exit 1; }
cmake --build "$build" --parallel 2 --target "${targets[@]}" >"$build.log" || { cat "$build.log"; exit 1; }
rm -f "$build.log"
ctest --test-dir "$build" --output-on-failure --parallel 2 --no-tests=error "${tests[@]}"

memtrace=$build/bin/memtrace
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# try WHAT...: a failure with a clear line is fine, a sanitizer's report or a crash is not.
try() {
    local status=0
    "$@" >out 2>err || status=$?
    if [ $status -ge 77 ] || grep -qE 'Sanitizer|runtime error:' err; then
        echo "status $status: $*"
        head -n 60 err
        exit 1
    fi
}

export XDG_CACHE_HOME=$work/cache
export MEMTRACE_LIBRARY=$main/lib/libmemtrace.so
try "$memtrace" run --every 50ms --top 5 --output whole.mtp -- sh -c 'ls / >/dev/null; sleep 0.3'
try "$memtrace" run --children none --output one.mtp -- sh -c 'ls / >/dev/null; sleep 0.3'
if [ ! -s one.mtp ] || [ ! -s whole.mtp/run.json ]; then
    cat err
    echo "no profile"
    exit 1
fi
for option in "" --show-maximum --show-leaked --show-cumulative --show-allocations --show-temporary \
    --flat --json --csv; do
    try "$memtrace" report $option whole.mtp
done
try "$memtrace" diff whole.mtp whole.mtp
try "$memtrace" check 'leaked <= 0' whole.mtp
try "$memtrace" query whole.mtp "SELECT * FROM contexts JOIN frames ON frames.context = contexts.id"
for format in folded flamegraph gprof2dot pprof speedscope massif callgrind heaptrack html; do
    try "$memtrace" export --format $format --output exported whole.mtp
done
try "$memtrace" list
try "$memtrace" trace $$ 0x1000
try "$memtrace" flags --cflags --libs
try "$memtrace" report $$
try "$memtrace" report /etc/passwd
try "$memtrace" report --all-processes whole.mtp
echo "  $(command -v sh)+0x1234" | try "$memtrace" symbolize

# The server of the page: many askers, who leave; programs that end while it looks at them.
if "$memtrace" serve --help >/dev/null 2>&1; then
    for test in "storm.py 8" live.py forks.py cancelling.py; do
        TEST_BUILD=$main TEST_MEMTRACE=$memtrace python3 "$source/tests/web/"$test
    done
fi

[ "$sanitizers" != thread ] || exit 0

TEST_BUILD=$main python3 "$source/tests/fuzz/storm.py" --found --memtrace "$memtrace"

# Cut off anywhere, damaged anywhere; the same places each time.
size=$(stat -c %s one.mtp)
RANDOM=1
pick() { # pick BELOW: sets picked
    picked=$(((RANDOM * 32768 + RANDOM) % $1))
}
for _ in $(seq 8); do
    pick "$size"
    head -c "$picked" one.mtp >cut.mtp
    try "$memtrace" report --json cut.mtp
    cp one.mtp damaged.mtp
    for change in $(seq 20); do
        # Half of the damage in the header, where every number matters.
        pick $((change % 2 ? size : 600))
        place=$picked
        pick 256
        printf "\\x$(printf %02x "$picked")" |
            dd of=damaged.mtp bs=1 seek="$place" conv=notrunc status=none
    done
    try "$memtrace" report --json damaged.mtp
    try "$memtrace" diff --json damaged.mtp one.mtp
    try "$memtrace" export --format html --output exported damaged.mtp
done
echo "clean"
