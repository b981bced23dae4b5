# SPDX-License-Identifier: MIT
# Sourced by setup, test and demo: installing packages by Debian's names, and one-line endings.

say() {
    echo "${0##*/}: $*"
}

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# as_root COMMAND...: runs it as root, or says that it cannot. sudo may ask for a password where somebody can type it.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    elif [ "${0##*/}" = setup ]; then
        echo "needs root: run sudo scripts/setup"
        return 1
    else
        echo "needs root: install them first, as root"
        return 1
    fi
}

# package_manager: the one that this system has; nothing if it has another.
package_manager() {
    local manager
    for manager in apt-get dnf pacman apk; do
        if command -v "$manager" >/dev/null 2>&1; then
            echo "$manager"
            return
        fi
    done
}

# package_names MANAGER PACKAGE...: what these packages of Debian are there, by scripts/packages.txt: lines of
# "Debian's name, names there"; of one that it does not know the first alone.
package_names() {
    local manager=$1
    shift
    [ $# != 0 ] || return 0
    if [ "$manager" = apt-get ]; then
        printf '%s\n' "$@" | awk '{ print $1, $1 }'
        return
    fi
    printf '%s\n' "$@" | awk -v manager="$manager" '
        NR == FNR { if ($2 == "Debian") for (i = 3; i <= NF; i++) if ($i == manager) column = i - 1 }
        NR == FNR { if (!/^#/) names[$1] = $column; next }
        {
            key = $1 # gcc-12-plugin-dev stands there as gcc-N-plugin-dev
            version = match(key, /-[0-9]+-/) ? substr(key, RSTART + 1, RLENGTH - 2) : ""
            sub(/-[0-9]+-/, "-N-", key)
            there = names[key]
            gsub(/N-/, version "-", there)
            gsub(/,/, " ", there)
            print $1, there
        }' scripts/packages.txt -
}

# is_installed MANAGER PACKAGE
is_installed() {
    case $1 in
    apt-get) dpkg-query -W -f '${db:Status-Status}\n' "$2" 2>/dev/null | grep -x installed ;;
    dnf) rpm -q --whatprovides "$2" ;;
    pacman) pacman -T "$2" ;;
    apk) apk info -e "$2" ;;
    esac >/dev/null 2>&1
}

# need_packages WHAT_FOR PACKAGE...: installs those that are missing. The names are Debian's.
need_packages() {
    local what=$1 manager missing=() unknown=() package names name log
    shift
    manager=$(package_manager)
    [ -n "$manager" ] ||
        die "cannot install what is missing: there is no apt-get, dnf, pacman or apk; install by hand (Debian's names): $*"
    while read -r package names; do
        [ -n "$names" ] || unknown+=("$package")
        for name in $names; do
            is_installed "$manager" "$name" || missing+=("$name")
        done
    done < <(package_names "$manager" "$@")
    [ ${#unknown[@]} = 0 ] ||
        die "cannot install what $what needs: what $manager calls these packages of Debian is not known here; install them by hand: ${unknown[*]}"
    if [ ${#missing[@]} = 0 ]; then
        say "packages for $what: all there"
        return
    fi
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | awk '!seen[$0]++')
    say "packages for $what: installing ${missing[*]}"
    log=$(mktemp)
    if ! install_packages "$manager" "${missing[@]}" >"$log" 2>&1; then
        local reason
        reason=$(grep -iE '^(E:|error:|needs root)' "$log" | tail -n 1)
        rm -f "$log"
        die "cannot install ${missing[*]}: ${reason:-$manager failed}"
    fi
    rm -f "$log"
}

# want_packages WHAT_FOR PACKAGE...: installs those that this release has, and says which it has not.
want_packages() {
    local what=$1 package had=() lacking=() updated=
    shift
    if [ "$(package_manager)" = apt-get ]; then
        for package in "$@"; do
            if ! is_installed apt-get "$package" && ! has_candidate "$package" && [ -z "$updated" ]; then
                as_root apt-get update >/dev/null || die "cannot tell which packages there are: apt-get update failed"
                updated=1
            fi
            if is_installed apt-get "$package" || has_candidate "$package"; then
                had+=("$package")
            else
                lacking+=("$package")
            fi
        done
        set -- "${had[@]}"
    fi
    need_packages "$what" "$@"
    [ ${#lacking[@]} = 0 ] || say "not in this release, so tests that use it are skipped: ${lacking[*]}"
}

has_candidate() {
    # To the end: what grep -q does not read any more would fail.
    apt-cache policy "$1" 2>/dev/null | grep '^  Candidate: [^(]' >/dev/null
}

# major_version COMPILER: 12, 14; nothing if it is not there.
major_version() {
    local version
    version=$("$1" -dumpversion 2>/dev/null) && echo "${version%%.*}"
}

# plugin_packages: what plugins for the compilers at hand are built with.
plugin_packages() {
    local version triplet
    version=$(major_version gcc) && echo "gcc-$version-plugin-dev"
    version=$(major_version clang) && echo "llvm-$version-dev"
    for triplet in aarch64-linux-gnu riscv64-linux-gnu; do
        version=$(major_version "$triplet-gcc") && echo "gcc-$version-plugin-dev-$triplet"
    done
    return 0
}

# install_packages MANAGER PACKAGE...
install_packages() {
    local manager=$1
    shift
    case $manager in
    apt-get) # package lists may be missing or old
        apt_install "$@" || { as_root apt-get update && apt_install "$@"; } ;;
    dnf) as_root dnf install -y --setopt=install_weak_deps=False "$@" ;;
    pacman) as_root pacman -S --needed --noconfirm "$@" ;;
    apk) as_root apk add --update-cache "$@" ;;
    esac
}

apt_install() {
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
