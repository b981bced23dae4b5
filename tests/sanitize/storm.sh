#!/bin/bash
# SPDX-License-Identifier: MIT
# storm.sh SOURCE BUILD MAIN_BUILD SECONDS
# The command with the sanitizer of threads, built in BUILD where it is not: many askers who leave at random moments for so
# long, then passes that are given up, and kept connections. No sanitizer may speak up (tests/web/python/webserver.py).
set -euo pipefail
source=$1 build=$2 main=$3 seconds=$4
export TSAN_OPTIONS=exitcode=77:allocator_may_return_null=1
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMEMTRACE_TESTS=ON -DMEMTRACE_SANITIZE=thread >/dev/null
cmake --build "$build" --parallel 2 --target memtrace_command >/dev/null
for test in "storm.py $seconds" cancelling.py connections.py; do
    echo "$test"
    # shellcheck disable=SC2086
    TEST_BUILD=$main TEST_MEMTRACE=$build/bin/memtrace python3 "$source/tests/web/"$test
done
