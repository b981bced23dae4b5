# SPDX-License-Identifier: MIT
# Sourced by setup, test and demo: installing Debian packages by name, and one-line endings.

say() {
    echo "${0##*/}: $*"
}

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# as_root COMMAND...: runs it as root, or says that it cannot.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    else
        echo "needs root or sudo without a password"
        return 1
    fi
}

# need_packages WHAT_FOR PACKAGE...: installs those that are missing.
need_packages() {
    local what=$1 missing=() package log
    shift
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    if [ ${#missing[@]} = 0 ]; then
        say "packages for $what: all there"
        return
    fi
    command -v apt-get >/dev/null 2>&1 ||
        die "cannot install ${missing[*]}: this is no Debian (no apt-get); install them by hand"
    say "packages for $what: installing ${missing[*]}"
    log=$(mktemp)
    if ! install_packages "${missing[@]}" >"$log" 2>&1; then
        # Package lists may be missing or old.
        if ! { as_root apt-get update && install_packages "${missing[@]}"; } >"$log" 2>&1; then
            local reason
            reason=$(grep -E '^(E:|needs root)' "$log" | head -n 1)
            rm -f "$log"
            die "cannot install ${missing[*]}: ${reason:-apt-get failed}"
        fi
    fi
    rm -f "$log"
}

# major_version COMPILER: 12, 14; nothing if it is not there.
major_version() {
    local version
    version=$("$1" -dumpversion 2>/dev/null) && echo "${version%%.*}"
}

# plugin_packages: what plugins for the compilers at hand are built with.
plugin_packages() {
    local version
    version=$(major_version gcc) && echo "gcc-$version-plugin-dev"
    version=$(major_version clang) && echo "llvm-$version-dev"
    version=$(major_version aarch64-linux-gnu-gcc) && echo "gcc-$version-plugin-dev-aarch64-linux-gnu"
    return 0
}

install_packages() {
    as_root apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

# build_release: configures build/ (Release, Ninja) and builds it. Arguments go to cmake.
build_release() {
    local cache=build/CMakeCache.txt
    case $PWD in
    *:*) die "cannot build in $PWD: compilers and the loader split paths at a colon" ;;
    esac
    if [ -f "$cache" ] && { ! grep -qx 'CMAKE_GENERATOR:INTERNAL=Ninja' "$cache" ||
        ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; }; then
        say "build/ was configured otherwise: starting afresh"
        rm -rf build
    fi
    say "configuring build/ (Release, Ninja)"
    cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "$@" >build.log 2>&1 ||
        { cat build.log; rm -f build.log; die "cmake could not configure build/ (see above)"; }
    mv build.log build/configure.log
    say "building build/"
    cmake --build build --parallel >build/build.log 2>&1 ||
        { cat build/build.log; die "the build failed (see above)"; }
}
