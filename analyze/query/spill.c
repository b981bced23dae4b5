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

static sqlite3_file *spill_own(sqlite3_file *file) {
    return (sqlite3_file *)((struct spilled *)file + 1);
}

/* ---- What is counted ---- */

static void spill_count(struct spilled *file, sqlite3_int64 size) {
    file->spill->bytes += (uint64_t)size - (uint64_t)file->size;
    file->size = size;
}

static int spill_write(sqlite3_file *base, const void *bytes, int amount, sqlite3_int64 at) {
    struct spilled *file = (struct spilled *)base;
    struct spill *spill = file->spill;
    sqlite3_int64 end = at + amount;
    int result;
    if (end > file->size &&
        spill->bytes + (uint64_t)end - (uint64_t)file->size > spill->bytes_most) {
        spill->was_full = true;
        return SQLITE_FULL;
    }
    result = spill_own(base)->pMethods->xWrite(spill_own(base), bytes, amount, at);
    if (end > file->size) {
        spill_count(file, end);
    }
    return result;
}

static int spill_truncate(sqlite3_file *base, sqlite3_int64 size) {
    struct spilled *file = (struct spilled *)base;
    int result = spill_own(base)->pMethods->xTruncate(spill_own(base), size);
    if (result == SQLITE_OK && size < file->size) {
        spill_count(file, size);
    }
    return result;
}

static int spill_close_file(sqlite3_file *base) {
    spill_count((struct spilled *)base, 0);
    return spill_own(base)->pMethods->xClose(spill_own(base));
}

/* ---- What is handed on ---- */

static int spill_read(sqlite3_file *base, void *bytes, int amount, sqlite3_int64 at) {
    return spill_own(base)->pMethods->xRead(spill_own(base), bytes, amount, at);
}

static int spill_sync(sqlite3_file *base, int flags) {
    return spill_own(base)->pMethods->xSync(spill_own(base), flags);
}

static int spill_size(sqlite3_file *base, sqlite3_int64 *size) {
    return spill_own(base)->pMethods->xFileSize(spill_own(base), size);
}

static int spill_lock(sqlite3_file *base, int how) {
    return spill_own(base)->pMethods->xLock(spill_own(base), how);
}

static int spill_unlock(sqlite3_file *base, int how) {
    return spill_own(base)->pMethods->xUnlock(spill_own(base), how);
}

static int spill_check_lock(sqlite3_file *base, int *is_locked) {
    return spill_own(base)->pMethods->xCheckReservedLock(spill_own(base), is_locked);
}

/* No room is taken ahead of writes. */
static int spill_control(sqlite3_file *base, int what, void *value) {
    return what == SQLITE_FCNTL_SIZE_HINT || what == SQLITE_FCNTL_CHUNK_SIZE
               ? SQLITE_OK
               : spill_own(base)->pMethods->xFileControl(spill_own(base), what, value);
}

static int spill_sector_size(sqlite3_file *base) {
    return spill_own(base)->pMethods->xSectorSize(spill_own(base));
}

static int spill_device(sqlite3_file *base) {
    return spill_own(base)->pMethods->xDeviceCharacteristics(spill_own(base));
}

/* Of the first version: files are not mapped, since nobody would count what is written there. */
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = spill_close_file,
    .xRead = spill_read,
    .xWrite = spill_write,
    .xTruncate = spill_truncate,
    .xSync = spill_sync,
    .xFileSize = spill_size,
    .xLock = spill_lock,
    .xUnlock = spill_unlock,
    .xCheckReservedLock = spill_check_lock,
    .xFileControl = spill_control,
    .xSectorSize = spill_sector_size,
    .xDeviceCharacteristics = spill_device,
};

static int spill_open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                           int *out_flags) {
    struct spill *spill = (struct spill *)((char *)vfs - offsetof(struct spill, vfs));
    struct spilled *file = (struct spilled *)base;
    int result;
    memset(file, 0, sizeof *file);
    memset(spill_own(base), 0, (size_t)spill->own->szOsFile);
    result = spill->own->xOpen(spill->own, name, spill_own(base), flags, out_flags);
    file->spill = spill;
    if (spill_own(base)->pMethods != NULL) {
        file->base.pMethods = &methods;
    }
    return result;
}

/* ---- One connection ---- */

/* In the order in which SQLite looks. */
static void spill_find_folder(struct spill *spill) {
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
    spill_find_folder(spill);
    spill->bytes_most = statvfs(spill->folder, &disk) == 0
                            ? (uint64_t)disk.f_bavail * disk.f_frsize / 2
                            : UINT64_MAX;
    snprintf(spill->name, sizeof spill->name, "memtrace-%p", (void *)spill);
    spill->vfs = *spill->own;
    spill->vfs.zName = spill->name;
    spill->vfs.pNext = NULL;
    spill->vfs.szOsFile += (int)sizeof(struct spilled);
    spill->vfs.xOpen = spill_open_file;
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
