/* SPDX-License-Identifier: MIT */
/* target.c: looks at a program before it is started, and finds the library for it. See target.h. */
#define _GNU_SOURCE
#include "cli/target.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/base/thismachine.h"
#include "analyze/symbol/programfile.h"
#include "cli/cli.h"
#include "memtrace/emulator.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* ---- Where programs are ---- */

/* False: it cannot be told, and is empty. */
static bool find_own_folder(char folder[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    if (length <= 0) {
        return false;
    }
    *strrchr(folder, '/') = '\0';
    return true;
}

static int refuse_own_folder(void) {
    return cli_error("cannot tell where this command lies (is /proc mounted?)");
}

/* The first of these folders, seen from the command's, that holds the file. */
static bool find_folder(const char *base, const char *const *folders, const char *file,
                        char folder[PATH_MAX]) {
    char path[2 * PATH_MAX];
    for (; *folders != NULL; folders++) {
        snprintf(path, sizeof path, "%s/%s", base, *folders);
        if (realpath(path, folder) != NULL) {
            snprintf(path, sizeof path, "%s/%s", folder, file);
            if (access(path, R_OK) == 0) {
                return true;
            }
        }
    }
    return false;
}

void target_need_folder(const char *const *folders, const char *file, char folder[PATH_MAX]) {
    char base[PATH_MAX];
    if (!find_own_folder(base)) {
        cli_end(refuse_own_folder());
    }
    if (!find_folder(base, folders, file, folder)) {
        job_fail("%s is not at %s/%s", file, base, folders[0]);
    }
}

static bool is_executable(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

int target_find(const char *name, char path[PATH_MAX]) {
    const char *folders = getenv("PATH");
    int status = 127;
    if (name[0] == '\0') {
        return 127;
    }
    if (strchr(name, '/') != NULL) {
        struct stat found;
        if (strlen(name) >= PATH_MAX || stat(name, &found) != 0) {
            return errno == EACCES ? 126 : 127;
        }
        strcpy(path, name);
        return is_executable(path) ? 0 : 126;
    }
    for (const char *at = folders != NULL ? folders : "/bin:/usr/bin"; at != NULL;) {
        size_t length = strcspn(at, ":");
        int size =
            snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at, length != 0 ? "/" : "./", name);
        if (size < PATH_MAX && is_executable(path)) {
            return 0;
        }
        if (size < PATH_MAX && access(path, F_OK) == 0) {
            status = 126;
        }
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return status;
}

/* ---- Program files ---- */

enum { INTERPRETER_SIZE = 256 };

/* The loader that the program asks for; "": none. False: cannot be told. */
static bool find_loader(int fd, const Elf64_Ehdr *header, char name[INTERPRETER_SIZE]) {
    memset(name, 0, INTERPRETER_SIZE);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        off_t offset = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
        if (pread(fd, &segment, sizeof segment, offset) != sizeof segment) {
            return false;
        }
        if (segment.p_type == PT_INTERP) {
            return segment.p_filesz < INTERPRETER_SIZE &&
                   pread(fd, name, segment.p_filesz, (off_t)segment.p_offset) ==
                       (ssize_t)segment.p_filesz;
        }
    }
    return true;
}

/* The program behind "#!" at the start of a script. */
static bool read_interpreter(const char *text, char path[PATH_MAX]) {
    size_t length;
    text += 2 + strspn(text + 2, " \t");
    length = strcspn(text, " \t\n");
    if (length == 0 || length >= PATH_MAX) {
        return false;
    }
    memcpy(path, text, length);
    path[length] = '\0';
    return true;
}

/* A file that is to be started or, of a script, the program that runs it. */
struct started {
    int fd; /* -1: none */
    bool is_readable;
    bool is_program; /* it has this header */
    Elf64_Ehdr header;
    char path[PATH_MAX];
};

static void open_started(const char *path, bool follow, struct started *started) {
    union {
        Elf64_Ehdr elf;
        char text[256];
    } start = {0};
    char interpreter[PATH_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : pread(fd, &start, sizeof start - 1, 0);
    *started = (struct started){.fd = fd, .is_readable = size >= 0, .header = start.elf};
    snprintf(started->path, sizeof started->path, "%s", path);
    started->is_program =
        size >= (ssize_t)sizeof start.elf && memcmp(start.elf.e_ident, ELFMAG, SELFMAG) == 0;
    if (size > 2 && memcmp(start.text, "#!", 2) == 0 && follow &&
        read_interpreter(start.text, interpreter)) {
        close(fd);
        open_started(interpreter, false, started);
    }
}

static void close_started(const struct started *started) {
    if (started->fd >= 0) {
        close(started->fd);
    }
}

/* ---- Machines ---- */

/* Those that runtime/machine knows. */
static const struct target_machine machines[] = {
    {"AArch64", "aarch64-linux-gnu", "aarch64", EM_AARCH64, false},
    {"ARM", "arm-linux-gnueabihf", "arm", EM_ARM, false},
    {"MIPS64", "mips64el-linux-gnuabi64", "mips64el", EM_MIPS, false},
    {"RISC-V", "riscv64-linux-gnu", "riscv64", EM_RISCV, false},
    {"x86-64", "x86_64-linux-gnu", "x86_64", EM_X86_64, false}};
enum { MACHINES = sizeof machines / sizeof machines[0] };

/* Of an ELF file; EM_NONE: it is none of a machine's own class, least significant byte first. ARM's
 * programs alone have 32 bits here. (The fields up to the machine are alike in both classes.) */
static unsigned machine_of(const char *path) {
    struct started started;
    const Elf64_Ehdr *header = &started.header;
    bool is_own;
    open_started(path, false, &started);
    close_started(&started);
    is_own = started.is_program && header->e_ident[EI_DATA] == ELFDATA2LSB &&
             header->e_ident[EI_CLASS] == (header->e_machine == EM_ARM ? ELFCLASS32 : ELFCLASS64);
    return is_own ? header->e_machine : EM_NONE;
}

struct target_machine target_emulated(const char *path) {
    const struct memtrace_machine *emulator = memtrace_emulated_by(path);
    unsigned machine = machine_of(path);
    for (size_t i = 0; i < MACHINES; i++) {
        struct target_machine found = machines[i];
        found.is_by_name = emulator != NULL && emulator->elf == found.elf;
        if (found.elf != thismachine() && (found.is_by_name || machine == found.elf)) {
            return found;
        }
    }
    return (struct target_machine){0};
}

struct target_machine target_this_machine(void) {
    return (struct target_machine){.name = "this machine", .elf = thismachine()};
}

/* ---- Which library ---- */

/* How the files are named, on each machine. */
#define LIBRARY      "libmemtrace.so"
#define MUSL_LIBRARY "libmemtrace-musl.so"

static const char *library_name(bool is_musl) {
    return is_musl ? MUSL_LIBRARY : LIBRARY;
}

/* The library of this name beside this command. 0, or -1: `base` is the command's folder, empty if
 * that cannot be told. */
static int find_beside(const char *name, char path[PATH_MAX], char base[PATH_MAX]) {
    static const char *const folders[] = {MEMTRACE_LIBDIR, "../lib", ("../" MEMTRACE_MULTIARCH),
                                          NULL};
    char folder[PATH_MAX];
    char candidate[PATH_MAX + 64];
    if (!find_own_folder(base) || !find_folder(base, folders, name, folder)) {
        return -1;
    }
    snprintf(candidate, sizeof candidate, "%s/%s", folder, name);
    return realpath(candidate, path) != NULL ? 0 : -1;
}

bool target_library_folder(const char *triplet, char folder[PATH_MAX]) {
    static const char *const places[] = {MEMTRACE_LIBDIR, MEMTRACE_LIBDIR "/..", "../lib"};
    char base[PATH_MAX];
    char candidate[PATH_MAX + 256];
    find_own_folder(base);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s/%s/" LIBRARY, base, places[i], triplet);
        if (access(candidate, R_OK) == 0) {
            *strrchr(candidate, '/') = '\0';
            if (realpath(candidate, folder) != NULL) {
                return true;
            }
        }
    }
    snprintf(candidate, sizeof candidate, "%s/%s", base, MEMTRACE_LIBDIR);
    if (realpath(candidate, base) == NULL) {
        snprintf(base, sizeof base, "%.*s", PATH_MAX - 1, candidate);
    }
    snprintf(folder, PATH_MAX, "%.*s/%s", PATH_MAX - 64, base, triplet);
    return false;
}

/* False: `folder` is where it should be. */
static bool find_in_folder(const struct target_machine *machine, bool is_musl,
                           char folder[PATH_MAX], char path[PATH_MAX]) {
    bool is_there = target_library_folder(machine->triplet, folder);
    snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - 32, folder, library_name(is_musl));
    return is_there && access(path, R_OK) == 0;
}

int target_library(const struct target_machine *machine, bool is_musl, const char *own,
                   char path[PATH_MAX], char problem[TARGET_PROBLEM]) {
    char folder[PATH_MAX];
    problem[0] = '\0';
    if (own == NULL || own[0] == '\0') {
        if (!find_in_folder(machine, is_musl, folder, path)) {
            snprintf(problem, TARGET_PROBLEM, "%s for %s is not in %s", library_name(is_musl),
                     machine->name, folder);
            return -1;
        }
    } else if (realpath(own, path) == NULL) {
        snprintf(problem, TARGET_PROBLEM, "%s: %s", own, strerror(errno));
        return -1;
    }
    if (machine_of(path) != machine->elf) {
        snprintf(problem, TARGET_PROBLEM, "%s is not a library for %s", path, machine->name);
        return -1;
    }
    return 0;
}

/* That of this installation. False: there is none. */
static bool find_installed(unsigned machine, bool is_musl, char path[PATH_MAX]) {
    char folder[PATH_MAX];
    if (machine == thismachine()) {
        return find_beside(library_name(is_musl), path, folder) == 0;
    }
    for (size_t i = 0; i < MACHINES; i++) {
        if (machines[i].elf == machine) {
            return find_in_folder(&machines[i], is_musl, folder, path);
        }
    }
    return false;
}

/* What the user names; NULL: nothing. */
static const char *named_library(void) {
    const char *own = getenv("MEMTRACE_LIBRARY");
    return own != NULL && own[0] != '\0' ? own : NULL;
}

/* ---- What keeps a library out ---- */

/* More rights than ours: the loader ignores LD_PRELOAD there. */
static bool gains_rights(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || geteuid() == 0) {
        return false;
    }
    return ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
           ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()) ||
           getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool is_of_musl(const char *loader) {
    return strncmp(pathname_base(loader), "ld-musl", 7) == 0;
}

/* Another C library: its loader cannot load ours, and ends the program. (Of another machine's the
 * library was looked for already.) */
static const char *library_obstacle(const char *loader, unsigned machine) {
    char library[PATH_MAX];
    static const struct {
        const char *loader;
        const char *reason;
    } others[] = {{"ld-uClibc", "is linked with uClibc, not with glibc"},
                  {"ld64-uClibc", "is linked with uClibc, not with glibc"},
                  {"linker64", "is linked with Android's C library, not with glibc"}};
    if (is_of_musl(loader)) {
        return named_library() != NULL || machine != thismachine() ||
                       find_installed(machine, true, library)
                   ? NULL
                   : "is linked with musl, and " MUSL_LIBRARY
                     " is not there (build MemTrace where musl-gcc is)";
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strncmp(pathname_base(loader), others[i].loader, strlen(others[i].loader)) == 0) {
            return others[i].reason;
        }
    }
    return NULL;
}

/* A sanitizer in the program's own file has taken malloc's place; as a library it lets us in front,
 * unless the program overrules what we say to it. */
static const char *sanitizer_obstacle(const char *path) {
    static char reason[128];
    struct allocators found;
    if (programfile_allocators(path, ALLOCATORS_DYNAMIC, &found) != 0) {
        return NULL;
    }
    if (found.name != NULL && strstr(found.name, "Sanitizer") != NULL && found.defines_malloc) {
        snprintf(reason, sizeof reason, "is built with %s, whose malloc is linked into it",
                 found.name);
        return reason;
    }
    return found.rules_sanitizer && !found.defines_malloc
               ? "has its own __asan_default_options(), so AddressSanitizer's library must come "
                 "first"
               : NULL;
}

static const char *elf_obstacle(int fd, const Elf64_Ehdr *header, const char *path,
                                unsigned machine) {
    const char *name = pathname_base(path);
    char loader[INTERPRETER_SIZE];
    const char *reason;
    if (header->e_ident[EI_CLASS] != ELFCLASS64) {
        /* ARM's, where an emulator runs it: what it is linked with is not looked at */
        return machine == EM_ARM && header->e_machine == EM_ARM ? NULL : "is a 32-bit program";
    }
    if (header->e_machine != machine) {
        return "is a program for another machine";
    }
    if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld.so", 5) == 0) {
        return NULL; /* the loader itself, which preloads */
    }
    if (!find_loader(fd, header, loader)) {
        return NULL;
    }
    if (loader[0] == '\0') {
        struct allocators found;
        reason = library_obstacle(path, machine); /* another library's loader, run as a command */
        if (reason == NULL &&
            (programfile_allocators(path, ALLOCATORS_DYNAMIC, &found) != 0 ||
             !found.holds_runtime)) { /* else our settings in its environment are all it needs */
            reason = "is statically linked";
        }
        return reason;
    }
    reason = library_obstacle(loader, machine);
    return reason != NULL ? reason : sanitizer_obstacle(path);
}

static const char *file_obstacle(const char *path, unsigned machine) {
    struct started started;
    const char *reason = NULL;
    open_started(path, true, &started);
    if ((started.is_program || !started.is_readable) && gains_rights(started.path)) {
        reason = "has more rights than you (set-uid, set-gid or capabilities)";
    } else if (started.is_program) {
        reason = elf_obstacle(started.fd, &started.header, started.path, machine);
    }
    close_started(&started);
    return reason;
}

/* What recording a program takes here: its files, and a few for the symbols of modules. */
enum { DESCRIPTORS = 12 };

static const char *descriptor_obstacle(void) {
    static char reason[128];
    struct rlimit limit = {0};
    int opened[DESCRIPTORS];
    int count = 0;
    while (count < DESCRIPTORS && (opened[count] = open("/", O_PATH | O_CLOEXEC)) >= 0) {
        count++;
    }
    for (int i = 0; i < count; i++) {
        close(opened[i]);
    }
    if (count == DESCRIPTORS) {
        return NULL;
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(reason, sizeof reason, "runs under a limit of %llu open files (ulimit -n), too few",
             (unsigned long long)limit.rlim_cur);
    return reason;
}

const char *target_obstacle(const char *path, unsigned machine) {
    const char *reason = file_obstacle(path, machine);
    return reason != NULL                         ? reason
           : access("/proc/self/stat", R_OK) != 0 ? "runs where /proc is not mounted"
                                                  : descriptor_obstacle();
}

bool target_is_of_musl(const char *path) {
    struct started started;
    char loader[INTERPRETER_SIZE] = "";
    bool is_musl;
    open_started(path, true, &started);
    is_musl = started.is_program &&
              (is_of_musl(started.path) ||
               (find_loader(started.fd, &started.header, loader) && is_of_musl(loader)));
    close_started(&started);
    return is_musl;
}

/* ---- The library ---- */

/*
 * The link leads to the folder, not to the file: the runtime looks for the memtrace command beside
 * the library (../bin), and the kernel takes that from where the link leads.
 *
 * Links lie in <parent>/memtrace-lib-<uid>, named by a hash of what they lead to: every run of the
 * same installation uses the same link, and it stays, because programs that are followed may start
 * others at any time. Others may read the folder: a program that gives up root's rights and then
 * starts another one still has LD_PRELOAD. Only the owner can write there.
 */

/* The loader splits LD_PRELOAD at blanks and colons, and replaces $ORIGIN and the like. */
static const char unfit[] = ": \t\n$";

enum { UNUSED_SECONDS = 24 * 60 * 60 }; /* then a link that leads nowhere is removed */

/* A folder that is ours and that nobody else can write to: `parent` may be anybody's. Its
 * descriptor, or -1 with errno set. */
static int open_folder(const char *parent, char *folder, size_t capacity) {
    struct stat status;
    bool made;
    int fd;
    snprintf(folder, capacity, "%s/memtrace-lib-%lu", parent, (unsigned long)geteuid());
    made = mkdir(folder, 0755) == 0;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (made) {
        fchmod(fd, 0755); /* whatever the umask is */
    }
    if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 022) == 0) {
        return fd;
    }
    close(fd);
    errno = EPERM;
    return -1;
}

static bool leads_to(int folder, const char *name, const char *target) {
    char found[PATH_MAX];
    ssize_t length = readlinkat(folder, name, found, sizeof found - 1);
    if (length < 0) {
        return false;
    }
    found[length] = '\0';
    return strcmp(found, target) == 0;
}

/* Links of installations that are gone. One that was used lately may lead to a folder that only
 * another container sees. */
static void remove_stale(int folder) {
    time_t now = time(NULL);
    DIR *list = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        struct stat link;
        struct stat target;
        if (fstatat(folder, entry->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(link.st_mode) && now - link.st_mtime > UNUSED_SECONDS &&
            fstatat(folder, entry->d_name, &target, 0) != 0 && errno == ENOENT) {
            unlinkat(folder, entry->d_name, 0);
        }
    }
    if (list != NULL) {
        closedir(list);
    }
}

/* Two runs may do this at once: both make the same link. 0, or -1 with errno set. */
static int make_link(int folder, const char *name, const char *target) {
    char fresh[64];
    if (leads_to(folder, name, target)) {
        utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW); /* it is in use */
        return 0;
    }
    remove_stale(folder);
    snprintf(fresh, sizeof fresh, ".%s.%ld", name, (long)getpid());
    unlinkat(folder, fresh, 0);
    if (symlinkat(target, folder, fresh) != 0) {
        return -1;
    }
    if (renameat(folder, fresh, folder, name) == 0) {
        return 0;
    }
    unlinkat(folder, fresh, 0);
    return -1;
}

/* 0, or -1 with errno set. */
static int link_in(const char *parent, const char *target, const char *base, char path[PATH_MAX]) {
    char folder[64];
    char name[32];
    int fd = open_folder(parent, folder, sizeof folder);
    int result;
    int reason;
    if (fd < 0) {
        return -1;
    }
    snprintf(name, sizeof name, "%016" PRIx64, (uint64_t)XXH3_64bits(target, strlen(target)));
    result = make_link(fd, name, target);
    reason = errno;
    close(fd);
    snprintf(path, PATH_MAX, "%s/%s/%s", folder, name, base);
    errno = reason;
    return result;
}

int target_preload(const char *program, char path[PATH_MAX]) {
    const char *name = library_name(program != NULL && target_is_of_musl(program));
    const char *own = named_library();
    char library[PATH_MAX];
    char base[PATH_MAX];
    if (own != NULL) {
        return realpath(own, library) != NULL && access(library, R_OK) == 0
                   ? target_preload_of(library, path)
                   : cli_error("MEMTRACE_LIBRARY %s: %s", own, strerror(errno));
    }
    if (find_beside(name, library, base) == 0) {
        return target_preload_of(library, path);
    }
    return base[0] == '\0' ? refuse_own_folder()
                           : cli_error("%s is not at %s/%s; MEMTRACE_LIBRARY can say where it is",
                                       name, base, MEMTRACE_LIBDIR);
}

int target_preload_of(const char *found, char path[PATH_MAX]) {
    char library[PATH_MAX];
    char *base;
    snprintf(library, sizeof library, "%s", found);
    if (strpbrk(library, unfit) == NULL) {
        strcpy(path, library);
        return 0;
    }
    base = strrchr(library, '/');
    *base++ = '\0';
    if (strpbrk(base, unfit) != NULL) {
        return cli_error("%s/%s cannot be preloaded: the loader takes no blank, colon or dollar in "
                         "the name of a library",
                         library, base);
    }
    if (link_in("/dev/shm", library, base, path) == 0 ||
        link_in("/tmp", library, base, path) == 0) {
        return 0;
    }
    return cli_error("%s/%s cannot be preloaded: the loader takes no blank, colon or dollar in a "
                     "path, and a link to it cannot be made in /dev/shm or /tmp: %s",
                     library, base, strerror(errno));
}

/* One without a path says no more than which machine it is. */
char *target_libraries(unsigned machine, bool is_musl, const char *preload) {
    struct job_printing *text = job_print();
    const char *joint = "";
    for (size_t i = 0; i < 4 * MEMTRACE_MACHINES; i++) {
        /* This machine's first, then the others'; of each that for glibc, then for musl. */
        const struct memtrace_machine *of = &memtrace_machines[i / 2 % MEMTRACE_MACHINES];
        bool is_here = of->elf == thismachine();
        bool for_musl = i % 2 != 0;
        char library[PATH_MAX];
        char path[PATH_MAX];
        const char *found = NULL;
        if (is_here != (i < 2 * MEMTRACE_MACHINES)) {
            continue;
        }
        if (of->elf == machine && for_musl == is_musl) {
            found = preload;
        } else if (find_installed(of->elf, for_musl, library) &&
                   target_preload_of(library, path) == 0) {
            found = path;
        } else if (is_here && !for_musl) {
            found = "";
        }
        if (found != NULL) {
            fprintf(text->out, "%s%s%s=%s", joint, of->name, for_musl ? "-musl" : "", found);
            joint = ":";
        }
    }
    return job_printed(text);
}
