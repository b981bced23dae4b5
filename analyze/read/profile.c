/* SPDX-License-Identifier: MIT */
/* profile.c: opens profiles and checks what they say. See profile.h. */
#include "analyze/read/profile.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/read/block.h"
#include "analyze/read/byteorder.h"
#include "analyze/read/compressed.h"
#include "analyze/read/filemap.h"
#include "analyze/read/region.h"
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
    switch (kind) {
    case MEMTRACE_SEGMENT_TREE:
        return sizeof(struct memtrace_node);
    case MEMTRACE_SEGMENT_NODES:
    case MEMTRACE_SEGMENT_AREAS:
        return sizeof(uint64_t);
    case MEMTRACE_SEGMENT_LEDGER:
    case MEMTRACE_SEGMENT_CELLS:
        return sizeof(struct memtrace_cell);
    case MEMTRACE_SEGMENT_LIFETIMES:
        return sizeof(struct memtrace_lifetimes);
    case MEMTRACE_SEGMENT_THREADS:
        return sizeof(struct memtrace_thread_record);
    case MEMTRACE_SEGMENT_MODULES:
        return sizeof(struct memtrace_module);
    case MEMTRACE_SEGMENT_POOLS:
        return sizeof(struct memtrace_pool);
    case MEMTRACE_SEGMENT_POOL_ROOM:
        return sizeof(struct memtrace_pool_room);
    case MEMTRACE_SEGMENT_TIMELINE:
        return 1; /* one struct, its size is checked where it is read */
    case MEMTRACE_SEGMENT_FREES:
        return sizeof(struct memtrace_foreign_frees);
    case MEMTRACE_SEGMENT_EVENTS:
        return sizeof(struct memtrace_chunk);
    case MEMTRACE_SEGMENT_PROCESSES:
        return sizeof(struct memtrace_process);
    case MEMTRACE_SEGMENT_PATHS:
        return sizeof(struct memtrace_path);
    case MEMTRACE_SEGMENT_ESTIMATES:
        return sizeof(struct memtrace_estimate);
    default:
        return 0;
    }
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

static int profile_add_segment(struct profile *profile, const struct memtrace_segment *found,
                               uint64_t offset, uint64_t room) {
    uint64_t size = found->size < room ? found->size : room;
    uint32_t least = item_size_of(found->kind);
    uint64_t places;
    if (least == 0) {
        return 0;
    }
    if (found->header_size != sizeof *found || found->item_size < least ||
        (least > 1 && found->item_size % 8 != 0)) {
        profile_note_damage(profile, "a segment at byte %llu has a damaged header",
                            (unsigned long long)offset);
        return 0;
    }
    places = size / found->item_size;
    if (places > found->item_count) {
        places = found->item_count;
    }
    if (array_grow(&profile->segments, &profile->segment_room, profile->segment_count,
                   sizeof *profile->segments) != 0) {
        return -1;
    }
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
    return 0;
}

static int scan_segments(struct profile *profile, struct error *error) {
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
        if (profile_add_segment(profile, &found, offset, room) != 0) {
            return error_set(error, "out of memory while reading %s", profile->path);
        }
        if (found.size > room) {
            profile_note_damage(profile, "the segment at byte %llu is cut off",
                                (unsigned long long)offset);
            break;
        }
        offset += found.size;
    }
    return 0;
}

static void end_string(char *text, size_t size) {
    text[size - 1] = '\0';
}

void profile_end_strings(struct memtrace_header *header) {
    struct memtrace_recording *recording = (void *)header->recording;
    end_string(recording->path, sizeof recording->path);
    end_string(header->executable, sizeof header->executable);
    header->command[sizeof header->command - 2] = '\0';
    end_string(header->name, sizeof header->name);
    end_string(header->command, sizeof header->command);
    end_string(header->output, sizeof header->output);
    end_string(header->log, sizeof header->log);
}

/* One line for everything that is not a profile this program can read. */
static int profile_check_header(const struct memtrace_header *header, const char *path,
                                struct error *error) {
    if (memcmp(header->magic, MEMTRACE_MAGIC, sizeof header->magic) != 0) {
        return error_set(error, "%s is not a MemTrace profile", path);
    }
    if (byteorder_is_other(header)) { /* in memory that is not ours to turn */
        return error_set(
            error, "%s was written on a machine with the other byte order; read it there", path);
    }
    if (!profile_knows_version(header->version)) {
        return error_set(
            error,
            "%s has profile format %u, this memtrace reads formats up to %u; use the memtrace "
            "it was made with",
            path, header->version, MEMTRACE_FORMAT_PACKED);
    }
    if (header->byte_order != MEMTRACE_BYTE_ORDER || header->header_size != MEMTRACE_HEADER_SIZE) {
        return error_set(error, "%s has a damaged header; the profile cannot be read", path);
    }
    return 0;
}

/* file_size: bytes there are; profile->bytes and size are set. */
static int profile_read_structure(struct profile *profile, uint64_t file_size,
                                  struct error *error) {
    memcpy(&profile->header, profile->bytes, sizeof profile->header);
    profile->header.end = profile_load_u64(&profile_header(profile)->end);
    profile_end_strings(&profile->header);
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
    if (scan_segments(profile, error) != 0) {
        return -1;
    }
    profile->is_broken = profile->damage[0] != '\0';
    if ((profile->header.flags & MEMTRACE_FLAG_INCOMPLETE) != 0) {
        profile_note_damage(profile, PROFILE_INCOMPLETE);
    }
    return 0;
}

static struct profile *new_profile(const char *path, struct error *error) {
    struct profile *profile = calloc(1, sizeof *profile);
    if (profile != NULL) {
        profile->fd = -1;
        profile->path = strdup(path);
    }
    if (profile == NULL || profile->path == NULL) {
        free(profile);
        error_set(error, "out of memory while opening %s", path);
        return NULL;
    }
    return profile;
}

static int profile_map(struct profile *profile, int fd, uint64_t size, struct error *error) {
    void *bytes = filemap_open(fd, 0, size, FILEMAP_READS);
    if (bytes == NULL) {
        return error_set(error, "cannot map %s: %s", profile->path, strerror(errno));
    }
    profile->bytes = bytes;
    profile->mapped = size;
    profile->size = size;
    return 0;
}

static int copy_file(struct profile *profile, int fd, uint64_t size, struct error *error) {
    unsigned char *bytes = aligned_alloc(64, (size + 63) & ~(uint64_t)63);
    ssize_t count;
    if (bytes == NULL) {
        return error_set(error, "out of memory while reading %s", profile->path);
    }
    profile->owned = bytes;
    profile->bytes = bytes;
    count = block_read_at(fd, bytes, size, 0);
    if (count < 0) {
        return error_set(error, "cannot read %s: %s", profile->path, strerror(errno));
    }
    profile->size = (uint64_t)count; /* less, if it shrank meanwhile */
    return 0;
}

/* The header from the file into profile->header: whether to copy or to map depends on it. */
static int peek(struct profile *profile, int fd, uint64_t *size, struct error *error) {
    struct stat status;
    ssize_t count;
    if (fstat(fd, &status) != 0) {
        return error_set(error, "cannot read %s: %s", profile->path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(error, "%s is %s, not a profile", profile->path,
                         S_ISDIR(status.st_mode) ? "a folder" : "a special file");
    }
    *size = (uint64_t)status.st_size;
    count = pread(fd, &profile->header, sizeof profile->header, 0);
    if (count < 0) {
        return error_set(error, "cannot read %s: %s", profile->path, strerror(errno));
    }
    if ((size_t)count < sizeof profile->header) {
        if (count >= 8 && memcmp(profile->header.magic, MEMTRACE_MAGIC, 8) == 0) {
            return error_set(error,
                             "%s is cut off inside its header, at byte %zd of %d; nothing of it "
                             "can be read",
                             profile->path, count, MEMTRACE_HEADER_SIZE);
        }
        return error_set(error, "%s is not a MemTrace profile%s", profile->path,
                         count == 0 ? ", it is empty" : "");
    }
    profile->is_turned = byteorder_is_other(&profile->header);
    if (profile->is_turned) {
        byteorder_turn_header(&profile->header);
    }
    return profile_check_header(&profile->header, profile->path, error);
}

static int profile_read_file(struct profile *profile, int fd, struct error *error) {
    uint64_t size = 0;
    uint64_t wanted;
    if (peek(profile, fd, &size, error) != 0) {
        return -1;
    }
    if (compressed_is(&profile->header) && profile->is_turned) {
        return error_set(error,
                         "%s was compressed on a machine with the other byte order; read it there",
                         profile->path);
    }
    if (compressed_is(&profile->header)) {
        /* The program that wrote it is gone, or goes on and this is a copy. */
        size = profile->header.whole_bytes;
        profile->bytes = compressed_read(fd, profile->path, &profile->header, false,
                                         profile->damage, sizeof profile->damage, error);
        if (profile->bytes == NULL) {
            return -1;
        }
        profile->uncompressed = profile->size = size;
        return profile_read_structure(profile, size, error);
    }
    wanted = profile->header.end < size ? profile->header.end : size;
    if (wanted < MEMTRACE_HEADER_SIZE) {
        wanted = MEMTRACE_HEADER_SIZE;
    }
    profile->live = !profile->is_turned && profile->header.state == MEMTRACE_STATE_RUNNING &&
                    region_runs(fd, &profile->header);
    if (profile->live || (wanted > COPY_LIMIT && !profile->is_turned)) {
        if (profile_map(profile, fd, size, error) != 0) {
            return -1;
        }
    } else if (copy_file(profile, fd, wanted, error) != 0) {
        return -1;
    }
    if (profile->size < MEMTRACE_HEADER_SIZE) {
        return error_set(error, "%s became shorter while it was read", profile->path);
    }
    if (profile->is_turned) {
        byteorder_turn_file(profile->owned, profile->size);
    }
    if (profile->live) {
        profile->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (profile->fd < 0) {
            return error_set(error, "cannot keep %s open: %s", profile->path, strerror(errno));
        }
    }
    return profile_read_structure(profile, size, error);
}

struct profile *profile_open_file(int fd, const char *name, struct error *error) {
    struct profile *profile = new_profile(name, error);
    if (profile == NULL) {
        return NULL;
    }
    trust_note_data(fd);
    if (profile_read_file(profile, fd, error) != 0) {
        profile_close(profile);
        return NULL;
    }
    return profile;
}

struct profile *profile_open(const char *path, struct error *error) {
    struct profile *profile;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        error_set(error, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    profile = profile_open_file(fd, path, error);
    close(fd);
    return profile;
}

struct profile *profile_wrap(const void *bytes, size_t size, const char *name,
                             struct error *error) {
    struct profile *profile = new_profile(name, error);
    if (profile == NULL) {
        return NULL;
    }
    profile->bytes = bytes;
    profile->size = size;
    if (size < MEMTRACE_HEADER_SIZE) {
        error_set(error, "%s is not a MemTrace profile, or is cut off inside its header", name);
    } else if (compressed_is(bytes)) {
        error_set(error, "%s is a compressed profile: only files of these can be read", name);
    } else if (profile_check_header(bytes, name, error) == 0 &&
               profile_read_structure(profile, size, error) == 0) {
        return profile;
    }
    profile_close(profile);
    return NULL;
}

int profile_refresh(struct profile *profile, struct error *error) {
    struct stat status;
    uint64_t size;
    if (!profile->live) {
        return 0;
    }
    if (fstat(profile->fd, &status) != 0) {
        return error_set(error, "cannot read %s: %s", profile->path, strerror(errno));
    }
    size = (uint64_t)status.st_size;
    if (size < profile->mapped || profile_is_cut(profile)) {
        return error_set(error, "%s became shorter while it was read", profile->path);
    }
    if (size != profile->mapped) {
        void *bytes = filemap_resize((void *)profile->bytes, profile->mapped, size);
        if (bytes == NULL) {
            return error_set(error, "cannot map %s: %s", profile->path, strerror(errno));
        }
        profile->bytes = bytes;
        profile->mapped = size;
    }
    profile->size = size;
    profile->damage[0] = '\0';
    return profile_read_structure(profile, size, error);
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
    if (profile == NULL) {
        return;
    }
    if (profile->mapped != 0) {
        filemap_close((void *)profile->bytes, profile->mapped);
    }
    if (profile->uncompressed != 0) {
        munmap((void *)profile->bytes, profile->uncompressed);
    }
    if (profile->fd >= 0) {
        close(profile->fd);
    }
    free(profile->owned);
    free(profile->segments);
    free(profile->path);
    free(profile);
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
