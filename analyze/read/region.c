/* SPDX-License-Identifier: MIT */
/* region.c: profile regions by pid. See region.h. */
#include "analyze/read/region.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"
#include "analyze/read/procfile.h"
#include "memtrace/events.h"
#include "memtrace/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* State letter and field 22 of /proc/PID/stat. 0 or a negative errno. */
static int read_stat(pid_t pid, char *state, uint64_t *ticks) {
    char text[PROCFILE_STAT_BYTES];
    const char *fields = procfile_stat(pid, 0, 3, text);
    if (fields == NULL) {
        return -errno;
    }
    return sscanf(fields,
                  "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%" SCNu64,
                  state, ticks) == 2
               ? 0
               : -ESRCH;
}

/* The inode of its namespace of pids; 0: not known. */
static uint64_t namespace_of(const char *process) {
    char path[64];
    struct stat status;
    return snprintf(path, sizeof path, "/proc/%s/ns/pid", process) < (int)sizeof path &&
                   stat(path, &status) == 0
               ? (uint64_t)status.st_ino
               : 0;
}

/* The kernel gives a lease for writing to the only one that has a file open (fcntl(2)). */
bool region_is_open(int fd) {
    fcntl(fd, F_SETSIG, SIGCHLD); /* who opens it meanwhile sends a signal: one that is ignored */
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        return true;
    }
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

int region_start_ticks(pid_t pid, uint64_t *ticks) {
    char state;
    return read_stat(pid, &state, ticks) == 0 ? 0 : -1;
}

bool region_alive(pid_t pid, uint64_t start_ticks) {
    char state;
    uint64_t ticks;
    int result = pid > 0 ? read_stat(pid, &state, &ticks) : -ESRCH;
    if (result == -EMFILE || result == -ENFILE) { /* none can be opened: whoever has the number */
        return kill(pid, 0) == 0 || errno == EPERM;
    }
    return result == 0 && ticks == start_ticks && state != 'Z' && state != 'X';
}

/* A lease for reading is given where nobody has the file open for writing. */
bool region_is_written(int fd, bool *unknown) {
    fcntl(fd, F_SETSIG, SIGCHLD); /* as above */
    *unknown = false;
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
        fcntl(fd, F_SETLEASE, F_UNLCK);
        return false;
    }
    *unknown = errno != EAGAIN;
    return !*unknown;
}

pid_t region_pid_here(const struct memtrace_header *header) {
    const struct dirent *entry;
    SCOPE_FOLDER DIR *processes = opendir("/proc");
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        uint64_t ticks;
        long number = strtol(entry->d_name, NULL, 10);
        if (number > 0 && number <= INT32_MAX && region_start_ticks((pid_t)number, &ticks) == 0 &&
            ticks == header->process_start_ticks &&
            namespace_of(entry->d_name) == header->run.pid_namespace &&
            procfile_own_number((pid_t)number, 0) == header->pid) {
            return (pid_t)number;
        }
    }
    return 0;
}

bool region_is_foreign(const struct memtrace_header *header) {
    uint64_t own = namespace_of("self");
    return own != 0 && header->run.pid_namespace != 0 && header->run.pid_namespace != own;
}

bool region_runs(int fd, const struct memtrace_header *header) {
    bool unknown;
    return region_is_foreign(header)
               ? region_is_written(fd, &unknown)
               : region_alive((pid_t)header->pid, header->process_start_ticks);
}

/* What follows "<pid>.<ticks>". */
static bool region_is_ending(const char *text) {
    if (text[0] == '.' && text[1] >= '1' && text[1] <= '9') {
        text++;
        text += strspn(text, "0123456789");
    }
    return strcmp(text, ".mtp") == 0;
}

int region_parse(const char *path, struct region *region) {
    const char *name = strrchr(path, '/');
    int end = 0;
    uint64_t pid;
    *region = (struct region){0};
    name = name != NULL ? name + 1 : path;
    if (name[0] < '0' || name[0] > '9' || strlen(path) >= sizeof region->path ||
        sscanf(name, "%" SCNu64 ".%" SCNu64 "%n", &pid, &region->start_ticks, &end) != 2 ||
        !region_is_ending(name + end) || pid == 0 || pid > INT32_MAX) {
        return -1;
    }
    region->pid = (pid_t)pid;
    strcpy(region->path, path);
    return 0;
}

size_t region_folders(uid_t uid, struct region_folders *folders) {
    static const char *const parents[] = {"/dev/shm", "/tmp"};
    const char *own = getenv("MEMTRACE_REGION_DIR");
    size_t count = 0;
    if (own != NULL && own[0] != '\0' && strlen(own) < sizeof folders->path[0]) {
        strcpy(folders->path[count++], own);
    }
    for (int number = 1; number <= MEMTRACE_REGION_FOLDERS; number++) {
        char beside[16] = "";
        if (number > 1) {
            snprintf(beside, sizeof beside, ".%d", number);
        }
        for (size_t j = 0; j < sizeof parents / sizeof parents[0]; j++) {
            snprintf(folders->path[count++], sizeof folders->path[0], "%s/memtrace-%lu%s",
                     parents[j], (unsigned long)uid, beside);
        }
    }
    return count;
}

/* A regular file of ours: others may have made things in a world-writable folder. 0, or a negative
 * errno. */
static int region_look_at(struct region *region, uid_t uid) {
    struct memtrace_header header;
    size_t size = offsetof(struct memtrace_header, executable);
    struct stat status;
    if (lstat(region->path, &status) != 0) {
        return -errno;
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != uid) {
        return -ENOENT;
    }
    region->modified_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    SCOPE_FD int fd = open(region->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && pread(fd, &header, size, 0) == (ssize_t)size &&
        memcmp(header.magic, MEMTRACE_MAGIC, sizeof header.magic) == 0) {
        region->is_foreign = region_is_foreign(&header);
    }
    /* A pid of another namespace says nothing here: a region from there is in use as long as some
     * process has it open. */
    region->alive =
        region->is_foreign ? region_is_open(fd) : region_alive(region->pid, region->start_ticks);
    return 0;
}

/* By name, in the folders of the program's user. 0, or a negative errno. */
static int find_by_name(pid_t pid, uint64_t ticks, uid_t uid, struct region *region) {
    struct region_folders folders;
    size_t count = region_folders(uid, &folders);
    int result = -ENOENT;
    for (size_t i = 0; i < count; i++) {
        int found;
        char path[512];
        snprintf(path, sizeof path, "%s/%ld.%" PRIu64 ".mtp", folders.path[i], (long)pid, ticks);
        if (region_parse(path, region) != 0) {
            continue;
        }
        found = region_look_at(region, uid);
        if (found == 0) {
            return 0;
        }
        if (found == -EACCES) {
            result = -EACCES;
        }
    }
    return result;
}

static void end_string(char *text, size_t size) {
    text[size - 1] = '\0';
}

void region_end_strings(struct memtrace_header *header) {
    struct memtrace_recording *recording = (void *)header->recording;
    end_string(recording->path, sizeof recording->path);
    end_string(header->executable, sizeof header->executable);
    header->command[sizeof header->command - 2] = '\0';
    end_string(header->name, sizeof header->name);
    end_string(header->command, sizeof header->command);
    end_string(header->output, sizeof header->output);
    end_string(header->log, sizeof header->log);
}

enum region_header region_read_header(const char *path, struct memtrace_header *header) {
    SCOPE_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return REGION_NO_FILE;
    }
    if (pread(fd, header, sizeof *header, 0) != (ssize_t)sizeof *header ||
        memcmp(header->magic, MEMTRACE_MAGIC, sizeof header->magic) != 0) {
        return REGION_NO_HEADER;
    }
    region_end_strings(header);
    return REGION_HEADER;
}

/* The very file that is mapped: others may have put another one there. */
static bool is_mapped_file(const char *path, uint64_t inode) {
    struct memtrace_header header;
    struct stat status;
    return stat(path, &status) == 0 && status.st_ino == inode &&
           region_read_header(path, &header) == REGION_HEADER;
}

/* Left by a program that has replaced itself by exec, or was detached from: its process may have
 * another region. */
static bool region_is_left(const struct region *region) {
    struct memtrace_header header;
    return region_read_header(region->path, &header) == REGION_HEADER &&
           (header.state == MEMTRACE_STATE_EXECED || (header.flags & MEMTRACE_FLAG_LEFT) != 0);
}

/* What the program has mapped tells of a folder that only its own environment named, and of
 * another mount namespace or root. 0, or a negative errno. */
static int find_by_maps(pid_t pid, uint64_t ticks, struct region *region) {
    struct procmaps maps;
    struct procmapping mapping;
    struct region found = *region;
    bool is_found = false;
    int more;
    if (procmaps_open(&maps, pid) != 0) {
        return -errno;
    }
    while ((more = procmaps_next(&maps, &mapping)) != 0) {
        size_t length = more > 0 && mapping.path[0] == '/' ? strlen(mapping.path) : 0;
        if (length < 5 || length > 400 || strcmp(mapping.path + length - 4, ".mtp") != 0) {
            continue;
        }
        snprintf(region->path, sizeof region->path, "%s", mapping.path);
        if (!is_mapped_file(region->path, mapping.inode)) {
            snprintf(region->path, sizeof region->path, "/proc/%ld/root%s", (long)pid,
                     mapping.path);
        }
        if (is_mapped_file(region->path, mapping.inode)) {
            region->pid = pid;
            region->start_ticks = ticks;
            region->alive = true;
            region->modified_ns = 0;
            found = *region;
            is_found = true;
            if (!region_is_left(region)) {
                break;
            }
        }
    }
    procmaps_close(&maps);
    *region = found;
    return is_found ? 0 : -ENOENT;
}

/* A forked child that is light counts in the region of the process that it came from, which it has
 * mapped. 0: `region` is the process's own. */
static pid_t counted_by(pid_t pid, const struct region *region) {
    struct memtrace_header header;
    return region_read_header(region->path, &header) == REGION_HEADER &&
                   header.run.pid_namespace == namespace_of("self") && header.pid != (uint32_t)pid
               ? (pid_t)header.pid
               : 0;
}

int region_find(pid_t pid, struct region *region, struct error *error) {
    struct region named;
    struct stat status;
    char path[64];
    uint64_t ticks;
    int by_name;
    int by_maps;
    snprintf(path, sizeof path, "/proc/%ld", (long)pid);
    if (pid <= 0 || stat(path, &status) != 0 || region_start_ticks(pid, &ticks) != 0) {
        return error_set(error,
                         "there is no process %ld; `memtrace list` shows what is profiled and "
                         "what was left by killed programs",
                         (long)pid);
    }
    by_name = find_by_name(pid, ticks, status.st_uid, region);
    if (by_name == 0 && !region_is_left(region)) {
        return 0;
    }
    named = *region;
    by_maps = find_by_maps(pid, ticks, region);
    if (by_maps != 0 && by_name == 0) {
        *region = named;
        return 0;
    }
    if (by_maps == 0) {
        pid_t ancestor = counted_by(pid, region);
        return ancestor == 0
                   ? 0
                   : error_set(error,
                               "process %ld is a forked child that has allocated little so "
                               "far; it is counted in the profile of process %ld",
                               (long)pid, (long)ancestor);
    }
    if (status.st_uid != geteuid() && geteuid() != 0) {
        return error_set(error,
                         "process %ld belongs to another user (uid %lu); ask as that user or as "
                         "root",
                         (long)pid, (unsigned long)status.st_uid);
    }
    return error_set(error,
                     "process %ld is not profiled: it was not started by `memtrace run` nor built "
                     "with memtrace_instrument(), or ran with MEMTRACE=off",
                     (long)pid);
}

static bool region_is_same_file(const char *path, const char *other) {
    struct stat status;
    struct stat there;
    return stat(path, &status) != 0 || stat(other, &there) != 0 ||
           (status.st_ino == there.st_ino && status.st_dev == there.st_dev);
}

void region_root(const struct region *region, char root[REGION_ROOT]) {
    char mounts[64];
    char folder[64];
    snprintf(root, REGION_ROOT, "/proc/%ld/root", (long)region->pid);
    snprintf(folder, sizeof folder, "%s/.", root);
    snprintf(mounts, sizeof mounts, "/proc/%ld/ns/mnt", (long)region->pid);
    if (region_is_same_file(folder, "/") && region_is_same_file(mounts, "/proc/self/ns/mnt")) {
        root[0] = '\0';
    }
}

bool region_find_header(pid_t pid, struct region *region, struct memtrace_header *header) {
    return region_find(pid, region, NULL) == 0 &&
           region_read_header(region->path, header) == REGION_HEADER;
}

static bool is_recorded_by(pid_t pid, uint32_t recorded_pid, uint64_t start_ticks,
                           uint64_t start_realtime_ns, struct region *region) {
    struct memtrace_header header;
    uint64_t ticks;
    return region_start_ticks(pid, &ticks) == 0 && ticks == start_ticks &&
           region_find_header(pid, region, &header) && header.pid == recorded_pid &&
           header.process_start_ticks == start_ticks &&
           header.start_realtime_ns == start_realtime_ns &&
           header.state == MEMTRACE_STATE_RUNNING && region_alive(pid, start_ticks);
}

/* In a container its number may be another one than here: when it started tells which it is. */
int region_find_recorded(uint32_t pid, uint64_t start_ticks, uint64_t start_realtime_ns,
                         struct region *region, struct error *error) {
    bool is_found = pid != 0 && pid <= INT32_MAX &&
                    is_recorded_by((pid_t)pid, pid, start_ticks, start_realtime_ns, region);
    SCOPE_FOLDER DIR *processes = is_found ? NULL : opendir("/proc");
    for (const struct dirent *entry;
         !is_found && processes != NULL && (entry = readdir(processes)) != NULL;) {
        long number = strtol(entry->d_name, NULL, 10);
        is_found = number > 0 && number <= INT32_MAX &&
                   is_recorded_by((pid_t)number, pid, start_ticks, start_realtime_ns, region);
    }
    return is_found ? 0
                    : error_set(error, "its program has ended, or runs where it cannot be "
                                       "reached: as another user or on another machine");
}

static int region_newest_first(const void *left, const void *right) {
    const struct region *a = left;
    const struct region *b = right;
    return (a->modified_ns < b->modified_ns) - (a->modified_ns > b->modified_ns);
}

static int list_regions(const char *folder, uid_t uid, struct region **list, size_t *count) {
    struct dirent *entry;
    SCOPE_FOLDER DIR *directory = opendir(folder);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct region region;
        char path[512];
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path &&
            region_parse(path, &region) == 0 && region_look_at(&region, uid) == 0) {
            if (array_grow_by_count(list, *count, sizeof **list) != 0) {
                return -1;
            }
            (*list)[(*count)++] = region;
        }
    }
    return 0;
}

int region_list(struct region **list, size_t *count, struct error *error) {
    struct region_folders folders;
    size_t folder_count = region_folders(geteuid(), &folders);
    *list = NULL;
    *count = 0;
    for (size_t i = 0; i < folder_count; i++) {
        if (list_regions(folders.path[i], geteuid(), list, count) != 0) {
            free(*list);
            *list = NULL;
            *count = 0;
            return error_set(error, "out of memory while listing %s", folders.path[i]);
        }
    }
    if (*count > 1) {
        qsort(*list, *count, sizeof **list, region_newest_first);
    }
    return 0;
}
