#!/bin/bash
# SPDX-License-Identifier: MIT
# Run by root in a release's smallest system, in a checkout (scripts/test-platforms bookworm --pages): does what README.md,
# docs/first-hour.md, docs/tutorial-leak.md and docs/cmake.md say, as somebody does who copies their commands. Nothing is
# there but what these install; Python comes after README.md's part, for the comparison of what is printed.
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=$PWD

die() {
    echo "pages: $*" >&2
    exit 1
}

# block FILE HEADING NUMBER: that block of commands of the section.
block() {
    awk -v heading="## $2" -v wanted="$3" '
        $0 == heading { on = 1; next }
        on && /^## / { exit }
        on && /^```sh$/ { inside = 1; count++; next }
        /^```$/ { inside = 0 }
        inside && count == wanted' "$1"
}

# follow FILE HEADING NUMBER: runs it here, and keeps what it exports.
follow() {
    local commands
    commands=$(block "$@")
    [ -n "$commands" ] || die "$1, $2: there is no block $3"
    echo "pages: $1, $2, $3"
    set -x
    eval "$commands"
    { set +x; } 2>/dev/null
}

echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/99yes # what the reader answers
{ command -v python3 || command -v cmake || command -v gcc || command -v file; } && die "this is not a small system"

follow README.md Installing 1
[ ! -e build/tests ] && [ ! -e build/benchmarks ] || die "README.md builds tests"
! command -v python3 || die "README.md installs python3"
[ "$(command -v memtrace)" = ~/.local/bin/memtrace ] || die "it is not installed in ~/.local"
echo "pages: README.md, packages"
cpack --config build/CPackConfig.cmake >packages.log || { cat packages.log; die "cpack failed"; }
depends=$(dpkg-deb -f build/packages/memtrace_*.deb Depends)
[[ $depends == *libc6* && $depends == *libdw1* ]] || die "the .deb depends on: $depends"

apt-get install python3 sqlite3 >/dev/null
for page in first-hour.md tutorial-leak.md; do
    scripts/tutorial "$page" || die "docs/$page: see above"
done

# Somebody's project, with a test.
project=$(mktemp -d)
cd "$project"
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(app CXX)
add_executable(app app.cpp)
enable_testing()
add_test(NAME app COMMAND app)
set_tests_properties(app PROPERTIES FAIL_REGULAR_EXPRESSION memtrace)
END
cat >app.cpp <<'END'
#include <string>
int main(int count, char **) { return *new std::string(100, count) == "x"; }
END
follow "$tree/docs/cmake.md" "A whole project, unchanged" 1
follow "$tree/docs/cmake.md" "A whole project, unchanged" 2
memtrace report app.*.mtp --show-leaked --bottom-up | grep 'main at app.cpp:2' || die "the project's profile lacks main"

# As the page begins.
{
    echo 'cmake_minimum_required(VERSION 3.20)'
    echo 'project(app CXX)'
    awk '/^```cmake$/ { inside = 1; next } /^```$/ { exit } inside' "$tree/docs/cmake.md"
} >"$tree/app.txt"
cp app.cpp main.cpp
cp "$tree/app.txt" CMakeLists.txt
cmake -S . -B build-package && cmake --build build-package
build-package/app 2>&1 | grep 'memtrace: not freed  *[1-9]' || die "find_package: no summary, or another one"

# Two MemTraces, for two machines.
cd "$tree"
mkdir -p app
cp "$project/CMakeLists.txt" "$project/main.cpp" app/
follow docs/cmake.md Cross-compiling 1
follow docs/cmake.md Cross-compiling 2 | tee cross.log
said=$(grep '^-- MemTrace: app:' cross.log)
grep -qxF -e "$said" docs/cmake.md || die "docs/cmake.md shows another line than: $said"
cmake --build app/build
echo "pages: all as they say"
