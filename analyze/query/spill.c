/* SPDX-License-Identifier: MIT */
/* spill.c: see vtable.h. */
#include "analyze/query/vtable.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* SQLite's own file lies behind ours. */
struct spilled {
    sqlite3_file base;
    struct spill *spill;
    sqlite3_int64 size; /* what was counted */
};

static sqlite3_file *own_of(sqlite3_file *file) {
    return (sqlite3_file *)((struct spilled *)file + 1);
}

/* ---- What is counted ---- */

static void count(struct spilled *file, sqlite3_int64 size) {
    file->spill->bytes += (uint64_t)size - (uint64_t)file->size;
    file->size = size;
}

static int write_file(sqlite3_file *base, const void *bytes, int amount, sqlite3_int64 at) {
    struct spilled *file = (struct spilled *)base;
    struct spill *spill = file->spill;
    sqlite3_int64 end = at + amount;
    int result;
    if (end > file->size &&
        spill->bytes + (uint64_t)end - (uint64_t)file->size > spill->bytes_most) {
        spill->was_full = true;
        return SQLITE_FULL;
    }
    result = own_of(base)->pMethods->xWrite(own_of(base), bytes, amount, at);
    if (end > file->size) {
        count(file, end);
    }
    return result;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size) {
    struct spilled *file = (struct spilled *)base;
    int result = own_of(base)->pMethods->xTruncate(own_of(base), size);
    if (result == SQLITE_OK && size < file->size) {
        count(file, size);
    }
    return result;
}

static int close_file(sqlite3_file *base) {
    count((struct spilled *)base, 0);
    return own_of(base)->pMethods->xClose(own_of(base));
}

/* ---- What is handed on ---- */

static int read_file(sqlite3_file *base, void *bytes, int amount, sqlite3_int64 at) {
    return own_of(base)->pMethods->xRead(own_of(base), bytes, amount, at);
}

static int sync_file(sqlite3_file *base, int flags) {
    return own_of(base)->pMethods->xSync(own_of(base), flags);
}

static int size_of_file(sqlite3_file *base, sqlite3_int64 *size) {
    return own_of(base)->pMethods->xFileSize(own_of(base), size);
}

static int lock_file(sqlite3_file *base, int how) {
    return own_of(base)->pMethods->xLock(own_of(base), how);
}

static int unlock_file(sqlite3_file *base, int how) {
    return own_of(base)->pMethods->xUnlock(own_of(base), how);
}

static int check_lock(sqlite3_file *base, int *is_locked) {
    return own_of(base)->pMethods->xCheckReservedLock(own_of(base), is_locked);
}

/* No room is taken ahead of writes. */
static int control_file(sqlite3_file *base, int what, void *value) {
    return what == SQLITE_FCNTL_SIZE_HINT || what == SQLITE_FCNTL_CHUNK_SIZE
               ? SQLITE_OK
               : own_of(base)->pMethods->xFileControl(own_of(base), what, value);
}

static int sector_size(sqlite3_file *base) {
    return own_of(base)->pMethods->xSectorSize(own_of(base));
}

static int device(sqlite3_file *base) {
    return own_of(base)->pMethods->xDeviceCharacteristics(own_of(base));
}

/* Of the first version: files are not mapped, since nobody would count what is written there. */
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = size_of_file,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_lock,
    .xFileControl = control_file,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = device,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                     int *out_flags) {
    struct spill *spill = (struct spill *)((char *)vfs - offsetof(struct spill, vfs));
    struct spilled *file = (struct spilled *)base;
    int result;
    memset(file, 0, sizeof *file);
    memset(own_of(base), 0, (size_t)spill->own->szOsFile);
    result = spill->own->xOpen(spill->own, name, own_of(base), flags, out_flags);
    file->spill = spill;
    if (own_of(base)->pMethods != NULL) {
        file->base.pMethods = &methods;
    }
    return result;
}

/* ---- One connection ---- */

/* In the order in which SQLite looks. */
static void find_folder(struct spill *spill) {
    const char *folders[] = {getenv("SQLITE_TMPDIR"), getenv("TMPDIR"), "/var/tmp", "/usr/tmp",
                             "/tmp"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (folders[i] != NULL && access(folders[i], W_OK | X_OK) == 0) {
            snprintf(spill->folder, sizeof spill->folder, "%s", folders[i]);
            return;
        }
    }
    strcpy(spill->folder, ".");
}

int spill_open(struct spill *spill, const char *path, sqlite3 **db) {
    struct statvfs disk;
    int result = sqlite3_initialize();
    *spill = (struct spill){.own = sqlite3_vfs_find(NULL)};
    if (result != SQLITE_OK || spill->own == NULL) {
        return result != SQLITE_OK ? result : SQLITE_ERROR;
    }
    find_folder(spill);
    spill->bytes_most = statvfs(spill->folder, &disk) == 0
                            ? (uint64_t)disk.f_bavail * disk.f_frsize / 2
                            : UINT64_MAX;
    snprintf(spill->name, sizeof spill->name, "memtrace-%p", (void *)spill);
    spill->vfs = *spill->own;
    spill->vfs.zName = spill->name;
    spill->vfs.pNext = NULL;
    spill->vfs.szOsFile += (int)sizeof(struct spilled);
    spill->vfs.xOpen = open_file;
    /* Only to be found by this one call. */
    result = sqlite3_vfs_register(&spill->vfs, 0);
    if (result == SQLITE_OK) {
        result = sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, spill->name);
        sqlite3_vfs_unregister(&spill->vfs);
    }
    return result;
}

void spill_limit(struct spill *spill, uint64_t bytes_most) {
    if (bytes_most < spill->bytes_most) {
        spill->bytes_most = bytes_most;
    }
}
