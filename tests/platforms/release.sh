# SPDX-License-Identifier: MIT
# Sourced by scripts/test-platforms: scripts/demo and scripts/test in another release of Debian or Ubuntu, in a folder that is made for it:
#
#     scripts/test-platforms RELEASE [options]     RELEASE: trixie, sid, noble, bookworm
#
#     --only REGEX     these tests alone (ctest -R), without scripts/demo
#     --pages          neither; README.md, the first hour, the tutorial and docs/cmake.md are followed word by word, in
#                      a release that has nothing but what they install (tests/platforms/pages.sh)
#     --with PACKAGES  more packages, such as "clang-16 llvm-16-dev", with commas or spaces between
#     --root FOLDER    makes the release there, or uses the one that is there, and keeps it
#     --mirror URL     takes the packages from there; Debian's otherwise from where this system has its own
#
# The committed tree is what runs there. Processes and mounts are in namespaces of their own, so that nothing of
# them is left, however this ends. docs/platforms.md: what was run, how long it takes.
usage="usage: scripts/test-platforms trixie|sid|noble|bookworm [--only REGEX | --pages] [--with PACKAGES] [--root FOLDER] [--mirror URL]"

read_options() {
    release=${1:-} only='' pages='' with='' root='' keep='' mirror=''
    case $release in
    trixie | sid | noble | bookworm) shift ;;
    *) die "$usage" ;;
    esac
    while [ $# != 0 ]; do
        if [ "$1" = --pages ]; then
            pages=1
            shift
            continue
        fi
        [ $# -ge 2 ] || die "$1: what? $usage"
        case $1 in
        --only) only=$2 ;;
        --with) with=${2//,/ } ;;
        --root) keep=1 root=$2 ;;
        --mirror) mirror=$2 ;;
        *) die "$1: $usage" ;;
        esac
        shift 2
    done
}

# inside COMMAND...: runs it with processes and mounts of its own; all of them end with it, and when this script does.
inside() {
    unshare --mount --pid --fork --kill-child -- "$@" &
    running=$!
    local status=0
    wait "$running" || status=$?
    running=
    return $status
}

cleanup() {
    if [ -n "$running" ]; then
        kill -KILL "$running" 2>/dev/null || true
        wait "$running" 2>/dev/null || true
    fi
    rm -f "$log"
    [ -z "$keep" ] || return 0
    for _ in $(seq 50); do
        rm -rf --one-file-system "$root" 2>/dev/null && return
        sleep 0.2 # processes that were just ended may still write there
    done
    say "some of $root is left"
}

# Where this system's packages come from, if it is Debian.
mirror_here() {
    grep -qx 'ID=debian' /etc/os-release || return 0
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v security | head -n 1 || true
}

# The release's smallest system, in $root.
make_root() {
    local keyring=debian-archive-keyring components=main script=sid reason
    if [ "$release" = noble ]; then
        keyring=ubuntu-archive-keyring components=main,universe script=gutsy # that of all of Ubuntu's releases
    elif [ -z "$mirror" ]; then
        mirror=$(mirror_here)
    fi
    keyring=${KEYRING:-/usr/share/keyrings/$keyring.gpg}
    [ -e "$keyring" ] || die "cannot make $release: no $keyring to check its packages with (KEYRING names another)"
    say "making $release in $root"
    if ! inside debootstrap --variant=minbase --force-check-gpg --keyring="$keyring" --components="$components" \
        --include=ca-certificates "$release" "$root" "$mirror" "$script" >"$log" 2>&1; then
        reason=$(grep -E '^(E|W|unshare):' "$log" | tail -n 1 || true)
        die "cannot make $release: ${reason:-debootstrap failed}"
    fi
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/here" # it is not made to outlive a power cut
    touch "$root/made-by-memtrace"
}

# What this system needs to reach packages that one needs, too; and the committed tree.
prepare_root() {
    apt-config dump Acquire >"$root/etc/apt/apt.conf.d/99here"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    mkdir -p "$root/usr/local/share/ca-certificates"
    cp /usr/local/share/ca-certificates/* "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
    [ -e "$root/memtrace/.git" ] || git init -q "$root/memtrace"
    git -C "$root/memtrace" fetch -q "$PWD" HEAD
    git -C "$root/memtrace" checkout -q --force --detach FETCH_HEAD
    [ -z "$(git status --porcelain)" ] || say "what is not committed here is not tested there"
}

# Runs in the namespaces: its arguments are the folder and what runs there, by bash, in the tree. The folder becomes
# the root of all mounts: where / is none, as after chroot alone, no other namespaces can be made.
run_there='
    mount --bind "$0" "$0" && cd "$0" && mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
        mount -t tmpfs tmpfs "$0/dev/shm" && mount -t tmpfs tmpfs "$0/run" || exit 1
    pivot_root . . && umount -l . && cd / || exit 1
    exec /usr/bin/env -i "${@:2}" bash -c "cd /memtrace && $1"'

there() {
    local settings=()
    mapfile -t settings < <(env | grep -E '^(\w*_proxy|\w*_PROXY|\w*CERT\w*|\w*CA_BUNDLE|CTEST_PARALLEL_LEVEL|TERM)=')
    inside bash -c "$run_there" "$root" "$1" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${settings[@]}"
}

# What was tested: the versions that matter.
versions='
    . /etc/os-release
    first() { "$@" 2>/dev/null | head -n 1; }
    echo "$PRETTY_NAME: $(first getconf GNU_LIBC_VERSION), gcc $(first gcc -dumpfullversion), clang $(first clang -dumpversion), plugins: $(ls build/lib/memtrace 2>/dev/null | tr "\n" " ")"'

read_options "$@"
[ "$(id -u)" = 0 ] || die "$release: making a folder with another system in it needs root"
need_packages "$release" debootstrap git util-linux
running= log=$(mktemp)
[ -n "$root" ] || root=$(mktemp -d "${TMPDIR:-/tmp}/memtrace-$release.XXXXXX")
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if [ ! -e "$root/made-by-memtrace" ]; then
    [ ! -e "$root" ] || rmdir "$root" 2>/dev/null || die "$root: there is something else in it"
    make_root
fi
root=$(realpath "$root")
prepare_root

failed=()
if [ -n "$pages" ]; then
    there "update-ca-certificates >/dev/null; bash tests/platforms/pages.sh" || die "$release: failed: --pages (above)"
    say "$release: passed"
    exit
fi
there "update-ca-certificates >/dev/null; . scripts/packages.sh; need_packages 'this test' git $with" || die "$release has not all that is needed"
if [ -z "$only" ]; then
    there "scripts/demo" || failed+=(scripts/demo)
fi
there "scripts/test ${only:+-R $(printf '%q' "$only")}" || failed+=(scripts/test)
there "$versions"
[ ${#failed[@]} = 0 ] || die "$release: failed: ${failed[*]} (above)"
say "$release: passed"
