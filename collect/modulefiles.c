/* SPDX-License-Identifier: MIT */
/* modulefiles.c: see modulefiles.h. */
#include "collect/modulefiles.h"

#include "analyze/base/array.h"
#include "analyze/read/procfile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPEN_MOST = 1024,
    SHARE = 4,        /* of the descriptors that we may have */
    TRIES_MOST = 200, /* for a record whose writer may have died meanwhile */
};

/* One file. */
struct modulefile {
    dev_t device;
    ino_t inode;
    int fd;
    size_t users;
};

static struct {
    pthread_mutex_t lock;
    struct modulefile **items;
    size_t count;
    size_t room;
} open_files = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t open_most(void) {
    struct rlimit limit;
    rlim_t most = OPEN_MOST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / SHARE < most) {
        most = limit.rlim_cur / SHARE;
    }
    return (size_t)most;
}

/* Takes the descriptor, or closes it: the file is open by now, or too many are. NULL: not held. */
static struct modulefile *hold(int fd, const struct stat *status) {
    struct modulefile *file = NULL;
    pthread_mutex_lock(&open_files.lock);
    for (size_t i = 0; i < open_files.count && file == NULL; i++) {
        struct modulefile *other = open_files.items[i];
        file = other->device == status->st_dev && other->inode == status->st_ino ? other : NULL;
    }
    if (file == NULL && open_files.count < open_most() &&
        array_grow(&open_files.items, &open_files.room, open_files.count,
                   sizeof *open_files.items) == 0 &&
        (file = malloc(sizeof *file)) != NULL) {
        *file = (struct modulefile){.device = status->st_dev, .inode = status->st_ino, .fd = fd};
        open_files.items[open_files.count++] = file;
        fd = -1;
    }
    if (file != NULL) {
        file->users++;
    }
    pthread_mutex_unlock(&open_files.lock);
    if (fd >= 0) {
        close(fd);
    }
    return file;
}

static void let_go(struct modulefile *file) {
    pthread_mutex_lock(&open_files.lock);
    if (--file->users == 0) {
        for (size_t i = 0; i < open_files.count; i++) {
            if (open_files.items[i] == file) {
                open_files.items[i] = open_files.items[--open_files.count];
                break;
            }
        }
        close(file->fd);
        free(file);
    }
    if (open_files.count == 0) {
        free(open_files.items);
        open_files.items = NULL;
        open_files.room = 0;
    }
    pthread_mutex_unlock(&open_files.lock);
}

/* ---- A module's file ---- */

/* The mapping that has this address. false: none, or it is of no file. */
static bool find_mapped(struct procmaps *maps, uint64_t address, struct procmapping *mapped) {
    int more;
    rewind(maps->file);
    while ((more = procmaps_next(maps, mapped)) != 0) {
        if (more > 0 && address >= mapped->start && address < mapped->end) {
            return mapped->inode != 0;
        }
    }
    return false;
}

/* The descriptor of this file if it is the one that is mapped; -1: it is not. Not blocking: another
 * file may have the name by now. */
static int try_file(const struct procmapping *mapped, struct stat *status, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 &&
        (fstat(fd, status) != 0 || !S_ISREG(status->st_mode) || status->st_ino != mapped->inode)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* As the program names it, as the kernel does, as its own file; last by its mapping, which only
 * root may open. */
static int open_file(pid_t pid, const struct memtrace_module *module,
                     const struct procmapping *mapped, struct stat *status) {
    static const char self[] = "/proc/self/";
    char path[2 * PATH_MAX];
    int fd;
    if (strncmp(module->path, self, sizeof self - 1) == 0) {
        snprintf(path, sizeof path, "/proc/%ld/%.*s", (long)pid, (int)sizeof module->path,
                 module->path + sizeof self - 1);
    } else {
        snprintf(path, sizeof path, "/proc/%ld/root%.*s", (long)pid, (int)sizeof module->path,
                 module->path);
    }
    fd = try_file(mapped, status, path);
    if (fd < 0 && mapped->path[0] == '/') {
        snprintf(path, sizeof path, "/proc/%ld/root%s", (long)pid, mapped->path);
        fd = try_file(mapped, status, path);
    }
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
        fd = try_file(mapped, status, path);
    }
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%ld/map_files/%" PRIx64 "-%" PRIx64, (long)pid,
                 mapped->start, mapped->end);
        fd = try_file(mapped, status, path);
    }
    return fd;
}

static void look_at(struct modulefiles *files, pid_t pid, struct procmaps *maps,
                    const struct memtrace_module *module, uint64_t id) {
    struct procmapping mapped;
    struct stat status;
    int fd = -1;
    if (id < files->count && files->items[id] == NULL && module->path[0] == '/' &&
        find_mapped(maps, module->start, &mapped)) {
        fd = open_file(pid, module, &mapped, &status);
    }
    if (fd >= 0) {
        files->items[id] = hold(fd, &status);
    }
}

static bool make_room(struct modulefiles *files, size_t count) {
    struct modulefile **grown;
    if (count <= files->count) {
        return true;
    }
    grown = reallocarray(files->items, count, sizeof(struct modulefile *));
    if (grown == NULL) {
        return false;
    }
    memset(grown + files->count, 0, (count - files->count) * sizeof(struct modulefile *));
    files->items = grown;
    files->count = count;
    return true;
}

/* From this id on there are modules that have no record yet, or whose segment is not seen yet. */
static uint32_t look_at_all(struct modulefiles *files, const struct claim *claim,
                            const struct profile *profile, struct procmaps *maps, uint32_t count) {
    uint64_t known = 0;
    uint32_t seen = count;
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        uint64_t end = (uint64_t)segment->index * segment->leaf_items + segment->item_count;
        if (segment->kind != MEMTRACE_SEGMENT_MODULES) {
            continue;
        }
        known = end > known ? end : known;
        for (uint32_t place = 0; place < segment->item_count; place++) {
            uint64_t id = (uint64_t)segment->index * segment->leaf_items + place;
            const struct memtrace_module *module = profile_item(profile, segment, place);
            if (id < files->seen || id >= count || module == NULL) {
                continue;
            }
            if (profile_load_u32(&module->id) == id) {
                look_at(files, claim->region.pid, maps, module, id);
            } else if (id != 0) {
                seen = id < seen ? (uint32_t)id : seen;
            }
        }
    }
    return seen < known ? seen : (uint32_t)known;
}

/* An older program's path may take the place of what is said here. */
static void say_seen(const struct claim *claim, uint32_t seen) {
    struct memtrace_recording *recording = claim_recording(claim);
    if (memchr(recording->path, '\0', sizeof recording->path) != NULL) {
        __atomic_store_n(&recording->modules_seen, seen, __ATOMIC_RELEASE);
    }
}

/* How many there are, as a frame can say it. */
static uint32_t module_count(const struct claim *claim) {
    uint32_t count = claim_load_u32(&claim->header->module_count);
    return count <= MEMTRACE_FRAME_MODULE_MASK ? count : MEMTRACE_FRAME_MODULE_MASK + 1;
}

bool modulefiles_are_new(const struct modulefiles *files, const struct claim *claim) {
    return files->seen < module_count(claim) && files->tries < TRIES_MOST &&
           claim_load_u32(&claim->header->state) == MEMTRACE_STATE_RUNNING && !claim->is_unseen;
}

void modulefiles_look(struct modulefiles *files, const struct claim *claim,
                      const struct profile *profile) {
    uint32_t count = module_count(claim);
    uint32_t before = files->seen;
    struct procmaps maps = {0};
    if (make_room(files, count) && procmaps_open(&maps, claim->region.pid) == 0) {
        files->seen = look_at_all(files, claim, profile, &maps, count);
        say_seen(claim, files->seen);
    }
    procmaps_close(&maps);
    files->tries = files->seen > before ? 0 : files->tries + 1;
}

bool modulefiles_path(const struct modulefiles *files, uint64_t module,
                      char path[MODULEFILES_PATH]) {
    if (module >= files->count || files->items[module] == NULL) {
        return false;
    }
    snprintf(path, MODULEFILES_PATH, "/proc/self/fd/%d", files->items[module]->fd);
    return true;
}

void modulefiles_close(struct modulefiles *files) {
    for (size_t id = 0; id < files->count; id++) {
        if (files->items[id] != NULL) {
            let_go(files->items[id]);
        }
    }
    free(files->items);
    *files = (struct modulefiles){0};
}
