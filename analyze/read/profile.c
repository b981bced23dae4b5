/* SPDX-License-Identifier: MIT */
/* profile.c: opens profiles and checks what they say. See profile.h. */
#include "analyze/read/profile.h"

#include "analyze/base/job.h"
#include "analyze/base/scope.h"
#include "analyze/read/block.h"
#include "analyze/read/budget.h"
#include "analyze/read/byteorder.h"
#include "analyze/read/filemap.h"
#include "analyze/read/region.h"
#include "analyze/read/segmentpack.h"
#include "analyze/read/trust.h"
#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_LIMIT (UINT64_C(1) << 30) /* larger finished files are mapped instead */

/* ---- What the file says ---- */

/* Bytes of one item of each kind, 0: not known to this reader. */
static uint32_t item_size_of(uint32_t kind) {
    static const uint32_t sizes[] = {
        [MEMTRACE_SEGMENT_TREE] = sizeof(struct memtrace_node),
        [MEMTRACE_SEGMENT_NODES] = sizeof(uint64_t),
        [MEMTRACE_SEGMENT_AREAS] = sizeof(uint64_t),
        [MEMTRACE_SEGMENT_LEDGER] = sizeof(struct memtrace_cell),
        [MEMTRACE_SEGMENT_CELLS] = sizeof(struct memtrace_cell),
        [MEMTRACE_SEGMENT_LIFETIMES] = sizeof(struct memtrace_lifetimes),
        [MEMTRACE_SEGMENT_THREADS] = sizeof(struct memtrace_thread_record),
        [MEMTRACE_SEGMENT_MODULES] = sizeof(struct memtrace_module),
        [MEMTRACE_SEGMENT_POOLS] = sizeof(struct memtrace_pool),
        [MEMTRACE_SEGMENT_POOL_ROOM] = sizeof(struct memtrace_pool_room),
        [MEMTRACE_SEGMENT_TIMELINE] = 1, /* one struct, its size is checked where it is read */
        [MEMTRACE_SEGMENT_FREES] = sizeof(struct memtrace_foreign_frees),
        [MEMTRACE_SEGMENT_EVENTS] = sizeof(struct memtrace_chunk),
        [MEMTRACE_SEGMENT_PROCESSES] = sizeof(struct memtrace_process),
        [MEMTRACE_SEGMENT_PATHS] = sizeof(struct memtrace_path),
        [MEMTRACE_SEGMENT_ESTIMATES] = sizeof(struct memtrace_estimate),
    };
    return kind < sizeof sizes / sizeof sizes[0] ? sizes[kind] : 0;
}

/* Keeps the first break only: what follows it is mostly its consequence. */
__attribute__((format(printf, 2, 3))) static void profile_note_damage(struct profile *profile,
                                                                      const char *format, ...) {
    if (profile->damage[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(profile->damage, sizeof profile->damage, format, arguments);
        va_end(arguments);
    }
}

/* A magic number that is missing although the header was filled in: the writer died before it
 * published the segment, whose pages hold nothing yet. */
static bool looks_unpublished(const struct memtrace_segment *segment, uint64_t room) {
    return segment->magic == 0 && segment->header_size == sizeof *segment &&
           item_size_of(segment->kind) != 0 && segment->size >= MEMTRACE_PAGE_SIZE &&
           segment->size % MEMTRACE_PAGE_SIZE == 0 && segment->size <= room;
}

static void profile_add_segment(struct profile *profile, const struct memtrace_segment *found,
                                uint64_t offset, uint64_t room) {
    uint64_t size = found->size < room ? found->size : room;
    uint32_t least = item_size_of(found->kind);
    uint64_t places;
    if (least == 0) {
        return;
    }
    if (found->header_size != sizeof *found || found->item_size < least ||
        (least > 1 && found->item_size % 8 != 0)) {
        profile_note_damage(profile, "a segment at byte %llu has a damaged header",
                            (unsigned long long)offset);
        return;
    }
    places = size / found->item_size;
    if (places > found->item_count) {
        places = found->item_count;
    }
    job_grow(&profile->segments, &profile->segment_room, profile->segment_count,
             sizeof *profile->segments);
    if (found->kind == MEMTRACE_SEGMENT_AREAS && found->index < MEMTRACE_AREA_LEAVES) {
        profile->area_leaves[found->index] = (uint32_t)profile->segment_count + 1;
    }
    profile->segments[profile->segment_count++] = (struct profile_segment){
        .kind = found->kind,
        .owner = found->owner,
        .index = found->index,
        .item_size = found->item_size,
        .item_count = (uint32_t)places,
        .leaf_items = found->item_count,
        .offset = offset,
        .size = size,
    };
}

static void scan_segments(struct profile *profile) {
    uint64_t offset = MEMTRACE_HEADER_SIZE;
    profile->segment_count = 0;
    memset(profile->area_leaves, 0, sizeof profile->area_leaves);
    while (offset + sizeof(struct memtrace_segment) <= profile->size) {
        const struct memtrace_segment *there = (const void *)(profile->bytes + offset);
        uint64_t room = profile->size - offset;
        struct memtrace_segment found;
        uint32_t magic = profile_load_u32(&there->magic); /* written last, so read first */
        memcpy(&found, there, sizeof found);
        found.magic = magic;
        if (magic != MEMTRACE_SEGMENT_MAGIC) {
            if (magic != 0) {
                profile_note_damage(profile, "no segment where one should start, at byte %llu",
                                    (unsigned long long)offset);
            }
            offset += looks_unpublished(&found, room) ? found.size : MEMTRACE_PAGE_SIZE;
            continue;
        }
        if (found.size < MEMTRACE_PAGE_SIZE || found.size % MEMTRACE_PAGE_SIZE != 0) {
            profile_note_damage(profile, "a segment at byte %llu has a damaged header",
                                (unsigned long long)offset);
            offset += MEMTRACE_PAGE_SIZE;
            continue;
        }
        profile_add_segment(profile, &found, offset, room);
        if (found.size > room) {
            profile_note_damage(profile, "the segment at byte %llu is cut off",
                                (unsigned long long)offset);
            break;
        }
        offset += found.size;
    }
}

/* One line for everything that is not a profile this program can read. */
static void profile_check_header(const struct memtrace_header *header, const char *path) {
    if (memcmp(header->magic, MEMTRACE_MAGIC, sizeof header->magic) != 0) {
        job_fail("%s is not a MemTrace profile", path);
    }
    if (byteorder_is_other(header)) { /* in memory that is not ours to turn */
        job_fail("%s was written on a machine with the other byte order; read it there", path);
    }
    if (!profile_knows_version(header->version)) {
        job_fail("%s has profile format %u, this memtrace reads formats up to %u; use the memtrace "
                 "it was made with",
                 path, header->version, MEMTRACE_FORMAT_PACKED);
    }
    if (header->byte_order != MEMTRACE_BYTE_ORDER || header->header_size != MEMTRACE_HEADER_SIZE) {
        job_fail("%s has a damaged header; the profile cannot be read", path);
    }
}

/* file_size: bytes there are; profile->bytes and size are set. */
static void profile_read_structure(struct profile *profile, uint64_t file_size) {
    memcpy(&profile->header, profile->bytes, sizeof profile->header);
    profile->header.end = profile_load_u64(&profile_header(profile)->end);
    region_end_strings(&profile->header);
    if (profile->header.end < profile->size) {
        profile->size =
            profile->header.end < MEMTRACE_HEADER_SIZE ? MEMTRACE_HEADER_SIZE : profile->header.end;
    }
    if (profile->header.end < MEMTRACE_HEADER_SIZE) {
        profile_note_damage(profile, "the header is damaged");
    } else if (profile->header.end > file_size && !profile->live) {
        profile_note_damage(profile, "cut off at byte %llu of %llu", (unsigned long long)file_size,
                            (unsigned long long)profile->header.end);
    }
    scan_segments(profile);
    profile->is_broken = profile->damage[0] != '\0';
    if ((profile->header.flags & MEMTRACE_FLAG_INCOMPLETE) != 0) {
        profile_note_damage(profile, PROFILE_INCOMPLETE);
    }
}

/* ---- Compressed ones ---- */

/* Steps from block to block. Returns where the first break is; 0: there is none. No writer makes
 * more than 10 bytes of 8 before they are compressed: a few small blocks shall not keep us busy. */
static uint64_t profile_read_blocks(int fd, uint64_t file_size, bool tables_only,
                                    unsigned char *bytes, uint64_t size, uint64_t *budget) {
    struct recording_buffer *buffer = recording_buffer_new();
    struct memtrace_block_header block;
    uint64_t offset = MEMTRACE_HEADER_SIZE;
    uint64_t broken = 0;
    uint64_t left = size * 2;
    errno = 0;
    while (offset < file_size && *budget != 0) {
        enum block_status found = block_load(fd, file_size, offset, &block, buffer);
        if (found == BLOCK_NONE) {
            broken = broken == 0 ? offset : broken;
            offset += 8;
            found = block_search(fd, file_size, &offset, buffer);
            if (found == BLOCK_WHOLE) {
                continue;
            }
        }
        if (found != BLOCK_WHOLE || block.raw_size > left) {
            broken = broken == 0 ? offset : broken;
            break;
        }
        if (block.kind == MEMTRACE_BLOCK_SEGMENTS && (!tables_only || block.items == 0) &&
            (block_unpack(&block, buffer) != 0 ||
             segmentpack_unpack(buffer->bytes, buffer->size, bytes, size, budget) != 0)) {
            broken = broken == 0 ? offset : broken;
        }
        left -= block.raw_size;
        offset += block_size(&block);
    }
    if (broken != 0 && errno == ENOMEM) {
        job_fail_memory();
    }
    job_undo_now(buffer);
    return broken;
}

struct uncompressed {
    void *bytes;
    uint64_t size;
};

static void profile_undo_mapping(void *what) {
    const struct uncompressed *mapping = what;
    munmap(mapping->bytes, mapping->size);
}

unsigned char *profile_uncompress(int fd, const char *path, const struct memtrace_header *header,
                                  bool tables_only, char *damage, size_t damage_size) {
    const uint64_t page = MEMTRACE_PAGE_SIZE;
    struct uncompressed *mapping = job_alloc(sizeof *mapping);
    struct memtrace_header *copy;
    struct stat status;
    uint64_t size = header->whole_bytes;
    uint64_t file_size;
    uint64_t broken;
    uint64_t budget;
    if (fstat(fd, &status) != 0) {
        job_fail("cannot read %s: %s", path, strerror(errno));
    }
    file_size = (uint64_t)status.st_size;
    if (size < MEMTRACE_HEADER_SIZE || size > profile_compressed_most(file_size)) {
        job_fail("%s has a damaged header; the profile cannot be read", path);
    }
    budget = budget_allowed(BUDGET_PROFILE, file_size);
    copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
    if (copy == MAP_FAILED) {
        job_fail("out of memory while reading %s", path);
    }
    *mapping = (struct uncompressed){copy, size};
    job_undo(profile_undo_mapping, mapping);
    broken = profile_read_blocks(fd, file_size, tables_only, (unsigned char *)copy,
                                 (size + page - 1) / page * page, &budget);
    if (budget == 0) {
        budget_refuse(BUDGET_PROFILE, path, file_size);
    }
    *copy = *header; /* whatever a block may have put there */
    copy->version &= ~MEMTRACE_FORMAT_COMPRESSED;
    copy->stored_bytes = copy->whole_bytes = 0;
    if (header->stored_bytes > file_size) {
        snprintf(damage, damage_size, "cut off at byte %llu of %llu", (unsigned long long)file_size,
                 (unsigned long long)header->stored_bytes);
    } else if (broken != 0) {
        snprintf(damage, damage_size, "a block at byte %llu is damaged",
                 (unsigned long long)broken);
    }
    return (unsigned char *)copy;
}

/* ---- Opening: in a job, whose memory is the profile's ---- */

struct opening {
    int fd; /* -1: it is these bytes */
    const char *name;
    const void *bytes;
    size_t size;
    struct profile *profile;
};

static void profile_map(struct profile *profile, int fd, uint64_t size) {
    void *bytes = filemap_open(fd, 0, size, FILEMAP_READS);
    if (bytes == NULL) {
        job_fail("cannot map %s: %s", profile->path, strerror(errno));
    }
    profile->bytes = bytes;
    profile->mapped = size;
    profile->size = size;
}

static void profile_copy(struct profile *profile, int fd, uint64_t size) {
    ssize_t count;
    profile->owned = job_take(aligned_alloc(64, (size + 63) & ~(uint64_t)63));
    profile->bytes = profile->owned;
    count = block_read_at(fd, profile->owned, size, 0);
    if (count < 0) {
        job_fail("cannot read %s: %s", profile->path, strerror(errno));
    }
    profile->size = (uint64_t)count; /* less, if it shrank meanwhile */
}

/* The header from the file into profile->header: whether to copy or to map depends on it. Returns
 * the file's size. */
static uint64_t profile_peek(struct profile *profile, int fd) {
    uint64_t size = block_read_header(fd, profile->path, "profile", "; nothing of it can be read",
                                      MEMTRACE_MAGIC, &profile->header, sizeof profile->header);
    profile->is_turned = byteorder_is_other(&profile->header);
    if (profile->is_turned) {
        byteorder_turn_header(&profile->header);
    }
    profile_check_header(&profile->header, profile->path);
    return size;
}

static void profile_read_file(struct profile *profile, int fd) {
    uint64_t size = profile_peek(profile, fd);
    uint64_t wanted;
    if (profile_is_compressed(&profile->header)) {
        if (profile->is_turned) {
            job_fail("%s was compressed on a machine with the other byte order; read it there",
                     profile->path);
        }
        /* The program that wrote it is gone, or goes on and this is a copy. */
        profile->bytes = profile_uncompress(fd, profile->path, &profile->header, false,
                                            profile->damage, sizeof profile->damage);
        profile->size = profile->header.whole_bytes;
        profile_read_structure(profile, profile->size);
        return;
    }
    wanted = profile->header.end < size ? profile->header.end : size;
    if (wanted < MEMTRACE_HEADER_SIZE) {
        wanted = MEMTRACE_HEADER_SIZE;
    }
    profile->live = !profile->is_turned && profile->header.state == MEMTRACE_STATE_RUNNING &&
                    region_runs(fd, &profile->header);
    if (profile->live || (wanted > COPY_LIMIT && !profile->is_turned)) {
        profile_map(profile, fd, size);
    } else {
        profile_copy(profile, fd, wanted);
    }
    if (profile->size < MEMTRACE_HEADER_SIZE) {
        job_fail("%s became shorter while it was read", profile->path);
    }
    if (profile->is_turned) {
        byteorder_turn_file(profile->owned, profile->size);
    }
    if (profile->live) {
        profile->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (profile->fd < 0) {
            job_fail("cannot keep %s open: %s", profile->path, strerror(errno));
        }
    }
    profile_read_structure(profile, size);
}

static void profile_read_bytes(struct profile *profile, const void *bytes, size_t size) {
    profile->bytes = bytes;
    profile->size = size;
    if (size < MEMTRACE_HEADER_SIZE) {
        job_fail("%s is not a MemTrace profile, or is cut off inside its header", profile->path);
    }
    if (profile_is_compressed(bytes)) {
        job_fail("%s is a compressed profile: only files of these can be read", profile->path);
    }
    profile_check_header(bytes, profile->path);
    profile_read_structure(profile, size);
}

static void profile_undo_file(void *what) {
    struct profile *profile = what;
    if (profile->mapped != 0) {
        filemap_close((void *)profile->bytes, profile->mapped);
    }
    if (profile->fd >= 0) {
        close(profile->fd);
    }
}

static void profile_open_in_job(void *what) {
    struct opening *opening = what;
    struct profile *profile = opening->profile = job_alloc(sizeof *profile);
    profile->fd = -1;
    profile->path = job_string(opening->name);
    job_undo(profile_undo_file, profile);
    /* Begun here, since what begins in a refresh goes with that. */
    job_reserve(&profile->segments, &profile->segment_room, 1, sizeof *profile->segments);
    if (opening->fd < 0) {
        profile_read_bytes(profile, opening->bytes, opening->size);
    } else {
        trust_note_data(opening->fd);
        profile_read_file(profile, opening->fd);
    }
}

static struct profile *profile_make(struct opening opening, struct error *error) {
    struct job_memory *memory = NULL;
    if (job_run(profile_open_in_job, &opening, &memory, error) != 0) {
        return NULL;
    }
    opening.profile->memory = memory;
    return opening.profile;
}

struct profile *profile_open_file(int fd, const char *name, struct error *error) {
    return profile_make((struct opening){.fd = fd, .name = name}, error);
}

struct profile *profile_open(const char *path, struct error *error) {
    SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        error_set(error, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    return profile_open_file(fd, path, error);
}

struct profile *profile_wrap(const void *bytes, size_t size, const char *name,
                             struct error *error) {
    return profile_make((struct opening){.fd = -1, .name = name, .bytes = bytes, .size = size},
                        error);
}

static void profile_refresh_in_job(void *what) {
    struct profile *profile = what;
    struct stat status;
    uint64_t size;
    if (fstat(profile->fd, &status) != 0) {
        job_fail("cannot read %s: %s", profile->path, strerror(errno));
    }
    size = (uint64_t)status.st_size;
    if (size < profile->mapped || profile_is_cut(profile)) {
        job_fail("%s became shorter while it was read", profile->path);
    }
    if (size != profile->mapped) {
        void *bytes = filemap_resize((void *)profile->bytes, profile->mapped, size);
        if (bytes == NULL) {
            job_fail("cannot map %s: %s", profile->path, strerror(errno));
        }
        profile->bytes = bytes;
        profile->mapped = size;
    }
    profile->size = size;
    profile->damage[0] = '\0';
    profile_read_structure(profile, size);
}

int profile_refresh(struct profile *profile, struct error *error) {
    return profile->live ? job_run(profile_refresh_in_job, profile, NULL, error) : 0;
}

void profile_let_go(const struct profile *profile) {
    if (profile->live && profile->mapped != 0) {
        madvise((void *)profile->bytes, profile->mapped, MADV_DONTNEED);
    }
}

bool profile_is_cut(const struct profile *profile) {
    return profile->mapped != 0 && filemap_is_cut(profile->bytes);
}

bool profile_reaches(const struct profile *profile, uint64_t end) {
    const struct profile_segment *last = profile->segments + profile->segment_count - 1;
    return profile->segment_count != 0 && last->offset + last->size >= end;
}

void profile_close(struct profile *profile) {
    struct job_memory *memory = profile != NULL ? profile->memory : NULL;
    job_free(&memory);
}

static void profile_undo(void *profile) {
    profile_close(profile);
}

void profile_goes_with_job(struct profile *profile) {
    job_undo(profile_undo, profile);
}

const void *profile_item(const struct profile *profile, const struct profile_segment *segment,
                         uint32_t place) {
    uint64_t start = (uint64_t)place * segment->item_size;
    if (place >= segment->item_count || start < sizeof(struct memtrace_segment)) {
        return NULL;
    }
    return profile->bytes + segment->offset + start;
}

const void *profile_next(const struct profile *profile, struct profile_items *at) {
    do {
        at->place++;
        while (at->segment == NULL || at->place >= at->segment->item_count) {
            if (at->next == profile->segment_count) {
                return NULL;
            }
            at->segment = &profile->segments[at->next++];
            at->place = at->segment->kind == at->kind ? 0 : at->segment->item_count;
        }
        at->item = profile_item(profile, at->segment, at->place);
    } while (at->item == NULL);
    at->number = (uint64_t)at->segment->index * at->segment->leaf_items + at->place;
    return at->item;
}

size_t profile_places(const struct profile *profile, enum memtrace_segment_kind kind) {
    size_t places = 0;
    for (size_t i = 0; i < profile->segment_count; i++) {
        places += profile->segments[i].kind == kind ? profile->segments[i].item_count : 0;
    }
    return places;
}

/* What stands at the area of this node. 0: none. */
static uint64_t profile_area(const struct profile *profile, uint64_t packed) {
    uint64_t number = packed >> MEMTRACE_NODE_AREA_SHIFT;
    uint32_t leaf = profile->area_leaves[number / MEMTRACE_AREA_LEAF_ITEMS];
    const uint64_t *start = leaf != 0 ? profile_item(profile, &profile->segments[leaf - 1],
                                                     number % MEMTRACE_AREA_LEAF_ITEMS)
                                      : NULL;
    return start != NULL ? profile_load_u64(start) : 0;
}

bool profile_node(const struct profile *profile, const struct profile_segment *segment,
                  uint32_t place, struct memtrace_node *node) {
    const void *item = profile_item(profile, segment, place);
    if (item != NULL && segment->kind == MEMTRACE_SEGMENT_NODES) {
        uint64_t packed = profile_load_u64(item);
        *node = memtrace_unpack(packed, profile_area(profile, packed));
    } else if (item != NULL) {
        const struct memtrace_node *whole = item;
        *node = (struct memtrace_node){.frame = profile_load_u64(&whole->frame),
                                       .parent = profile_load_u32(&whole->parent)};
    }
    return item != NULL;
}

const struct memtrace_header *profile_header(const struct profile *profile) {
    return (const struct memtrace_header *)profile->bytes;
}
