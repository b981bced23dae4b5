/* SPDX-License-Identifier: MIT */
/*
 * region.c: making the profile region, and what is in it: threads, whose memory they freed, pools,
 * the timeline. See region.h.
 */
#define _GNU_SOURCE
#include "runtime/record/region.h"

#include "runtime/base/proc.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>

enum {
    FIRST_CHURN_STEP = 1 << 20,
    /* What the start takes of the file: asked of the kernel at once. */
    START_BYTES = 39 * MEMTRACE_PAGE_SIZE,
};

static int file_mode = 0600;

int region_file_mode(void) {
    return file_mode;
}

/* A folder that is ours alone. */
static long region_own_folder(const char *path) {
    struct stat status;
    long result = sys_mkdir(path, 0700);
    if (result < 0 && result != -EEXIST) {
        return result;
    }
    result = sys_lstat(path, &status);
    if (result < 0) {
        return result;
    }
    return S_ISDIR(status.st_mode) && status.st_uid == sys_getuid() && (status.st_mode & 077) == 0
               ? 0
               : -EPERM;
}

/* PID.START.mtp; where that is taken (the program before an exec had the same pid), with .2, .3 and
 * so on before the ending. */
static long region_open_in(const char *folder, struct text *path) {
    enum { MOST_PROGRAMS = 1000 };
    long result = region_own_folder(folder);
    for (unsigned number = 1; result == 0 || (result == -EEXIST && number <= MOST_PROGRAMS);
         number++) {
        text_init(path, path->start, path->capacity);
        text_format(path, "%s/%u.%" PRIu64, folder, sys_getpid(), proc_start_ticks());
        text_add_suffix(path, number);
        text_add(path, ".mtp");
        result = path->cut ? -ENAMETOOLONG
                           : sys_open(path->start, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (result == 0) { /* the program closed its stdin: 0 is a descriptor too */
            break;
        }
    }
    return result;
}

static long region_try_folder(struct space *space, const char *folder,
                              const struct region_heirs *heirs) {
    char buffer[256];
    struct text path;
    long result;
    text_init(&path, buffer, sizeof buffer);
    result = region_open_in(folder, &path);
    if (result >= 0) {
        result = heirs != NULL
                     ? space_fork(space, (int)result, buffer, heirs->keep, heirs->argument)
                     : space_open(space, (int)result, buffer);
        if (result < 0) {
            sys_unlink(buffer);
        }
    }
    return result;
}

/* A folder of that name may be another's: root of a user namespace has the number of the other
 * root. */
static long region_try_parent(struct space *space, const char *parent,
                              const struct region_heirs *heirs) {
    char buffer[256];
    struct text folder;
    long result = -EPERM;
    for (unsigned number = 1; result == -EPERM && number <= MEMTRACE_REGION_FOLDERS; number++) {
        text_init(&folder, buffer, sizeof buffer);
        text_format(&folder, "%s/memtrace-%u", parent, sys_getuid());
        text_add_suffix(&folder, number);
        result = region_try_folder(space, buffer, heirs);
    }
    return result;
}

static long region_open_space(struct space *space, const struct settings *settings,
                              const struct region_heirs *heirs, uint32_t *flags) {
    long result;
    if (settings->folder[0] != '\0') {
        return region_try_folder(space, settings->folder, heirs);
    }
    result = region_try_parent(space, "/dev/shm", heirs);
    if (result < 0) {
        result = region_try_parent(space, "/tmp", heirs);
        *flags |= result >= 0 ? (uint32_t)MEMTRACE_FLAG_DISK : 0;
    }
    return result;
}

static int region_add_timeline(struct region *region) {
    if (space_leaf(region->space, &region->timeline, MEMTRACE_SEGMENT_TIMELINE, 0,
                   sizeof *region->timeline, 1) == NULL) {
        return -1;
    }
    region->timeline->churn_step_bytes = FIRST_CHURN_STEP;
    return 0;
}

static int region_add_threads(struct region *region) {
    struct memtrace_thread_record *others;
    if (space_leaf(region->space, &region->thread_leaf[0], MEMTRACE_SEGMENT_THREADS, 0,
                   sizeof *others, REGION_THREADS_PER_LEAF) == NULL) {
        return -1;
    }
    others = region_thread(region, MEMTRACE_THREAD_OTHERS);
    others->id = others->place = MEMTRACE_THREAD_OTHERS;
    text_copy(others->name, sizeof others->name, "others");
    return 0;
}

static void region_fill_header(struct memtrace_header *header, const struct settings *settings,
                               uint32_t flags) {
    header->version = MEMTRACE_FORMAT_PACKED;
    header->header_size = MEMTRACE_HEADER_SIZE;
    header->byte_order = MEMTRACE_BYTE_ORDER;
    header->machine = MACHINE_ELF;
    header->state = MEMTRACE_STATE_RUNNING;
    header->flags = flags;
    header->stacks = settings->stacks;
    header->pid = sys_getpid();
    header->parent_pid = sys_getppid();
    header->uid = sys_getuid();
    header->thread_count = MEMTRACE_THREAD_OTHERS + 1;
    header->start_realtime_ns = sys_clock_ns(CLOCK_REALTIME);
    header->start_monotonic_ns = sys_clock_ns(CLOCK_MONOTONIC);
    header->every_ns = settings->every_ns;
    header->churn_limit_bytes = settings->churn_bytes;
    header->top = settings->top;
    header->summary = settings->summary;
    header->log_size_bytes = settings->log_size_bytes;
    header->limit = settings->limit;
    header->owner = settings->owner;
    file_mode = settings->file_mode != 0 ? (int)settings->file_mode : 0600;
    header->run = (struct memtrace_run){.id = settings->run, .children = settings->children};
}

/* Which process this is; only files need to say. */
static void region_identify(struct memtrace_header *header) {
    header->process_start_ticks = proc_start_ticks();
    header->run.pid_namespace = proc_pid_namespace();
}

static void region_tell_failure(const struct settings *settings, long error) {
    if (error == -EPERM && settings->folder[0] != '\0') {
        log_error("the folder %s (MEMTRACE_REGION_DIR) is not this user's alone (chmod 700 makes "
                  "it so); the program goes on without a profile",
                  settings->folder);
    } else {
        log_error("no place for the profile while the program runs: neither /dev/shm nor /tmp (or "
                  "MEMTRACE_REGION_DIR) can be used, error %d; the program goes on without",
                  (int)-error);
    }
}

int region_create(struct region *region, struct space *space, const struct settings *settings) {
    uint32_t flags = 0;
    long result = region_open_space(space, settings, NULL, &flags);
    *region = (struct region){.space = space, .settings = settings};
    if (result < 0) {
        region_tell_failure(region->settings, result);
        return -1;
    }
    region_fill_header(space->header, settings, flags);
    region_identify(space->header);
    region->birth_zero_ns = space->header->birth_zero_ns = space->header->start_monotonic_ns;
    space_prepare(space, START_BYTES, SYS_PAGES_NOW);
    if (region_add_timeline(region) != 0 || region_add_threads(region) != 0) {
        sys_unlink(space->path);
        return -1;
    }
    return 0;
}

int region_begin_light(struct region *region) {
    *region = (struct region){.space = region->space,
                              .settings = region->settings,
                              .pools = region->pools,
                              .birth_zero_ns = region->birth_zero_ns};
    region_fill_header(region->space->header, region->settings, MEMTRACE_FLAG_FORKED);
    region->space->header->birth_zero_ns = region->birth_zero_ns;
    return region_add_threads(region);
}

int region_grow(struct region *region, const struct region_heirs *heirs) {
    struct space *space = region->space;
    struct memtrace_header *kept = sys_map(sizeof *kept);
    uint32_t flags = 0;
    /* Where filters deny it the parent's cannot be read, or nobody could tell whose the new one is.
     */
    long result = sys_readable(space->header) && sys_getpid() != 0 ? -ENOMEM : -EPERM;
    if (result == -ENOMEM && kept != NULL &&
        (region->timeline != NULL || region_add_timeline(region) == 0)) {
        *kept = *space->header;
        result = region_open_space(space, region->settings, heirs, &flags);
        *space->header = *kept; /* of the file, or again of the private space */
        space->header->flags |= flags;
    }
    if (kept != NULL) {
        sys_unmap(kept, sizeof *kept);
    }
    if (result < 0) {
        region_tell_failure(region->settings, result);
        return -1;
    }
    region_identify(space->header);
    return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static uint32_t describe_number; /* %n: regions this process described before */

static void region_expand(struct text *out, const char *pattern,
                          const struct memtrace_header *header) {
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%' || at[1] == '\0') {
            text_add_bytes(out, at, 1);
            continue;
        }
        at++;
        if (*at == 'p') {
            text_format(out, "%u", header->pid);
        } else if (*at == 'e') {
            text_add(out, memtrace_program(header));
        } else if (*at == 't') {
            text_format(out, "%" PRIu64, header->start_realtime_ns / 1000000000u);
        } else if (*at == 'n') {
            text_format(out, "%u", describe_number);
        } else {
            text_add_bytes(out, at - (*at != '%'), *at == '%' ? 1 : 2);
        }
    }
}

static int region_has_pid(const char *pattern) {
    for (; *pattern != '\0'; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            return 1;
        }
        pattern += pattern[0] == '%' && pattern[1] == '%';
    }
    return 0;
}

/* A child's files get .PID where the pattern has none. */
static void region_set_path(char *to, size_t capacity, const char *pattern,
                            const struct memtrace_header *header, int is_child) {
    struct text text;
    text_init(&text, to, capacity);
    if (pattern[0] != '/') {
        char folder[2048];
        if (sys_getcwd(folder, sizeof folder) > 0 && folder[0] == '/') {
            text_format(&text, "%s%s", folder, folder[1] != '\0' ? "/" : "");
        }
    }
    region_expand(&text, pattern, header);
    if (is_child && !region_has_pid(pattern)) {
        text_format(&text, ".%u", header->pid);
    }
}

/* A program that was attached to may have written a title over its arguments: then the rest of
 * their place is empty, and none of them. */
static void region_read_command(struct memtrace_header *header) {
    long size = proc_read("/proc/self/cmdline", header->command, sizeof header->command - 1);
    while ((header->flags & MEMTRACE_FLAG_ATTACHED) != 0 && size > 1 &&
           header->command[size - 1] == '\0' && header->command[size - 2] == '\0') {
        size--;
    }
    header->command_bytes = size > 0 ? (uint64_t)size : 0;
}

/* A file with several names is called by the one that was run; a script is what its interpreter's
 * file is called. */
static void region_read_name(struct memtrace_header *header) {
    const char *run = (const char *)getauxval(AT_EXECFN);
    const char *name = run != NULL ? text_base_name(run) : "";
    struct stat file;
    struct stat ours;
    long fd = run != NULL ? sys_open(run, O_PATH | O_CLOEXEC, 0) : -1;
    const char *program = getauxval(AT_BASE) != 0 ? "/proc/self/exe" : header->executable;
    long own = fd >= 0 ? sys_open(program, O_PATH | O_CLOEXEC, 0) : -1;
    if (own >= 0 && sys_fstat((int)fd, &file) == 0 && sys_fstat((int)own, &ours) == 0 &&
        file.st_dev == ours.st_dev && file.st_ino == ours.st_ino &&
        text_length(name) < sizeof header->name) {
        text_copy(header->name, sizeof header->name, name);
    }
    sys_close(fd);
    sys_close(own);
}

void region_describe(struct region *region, int forked) {
    struct memtrace_header *header = region->space->header;
    const struct settings *settings = region->settings;
    struct memtrace_recording *recording = region_recording(header);
    static char first[sizeof header->output]; /* all profiles of a run go to that of its first */
    if (proc_program_file(header->executable, sizeof header->executable) == 0) {
        text_copy(header->executable, sizeof header->executable, "unknown");
    }
    region_read_command(header);
    region_read_name(header);
    if (!forked) {
        region_set_path(first, sizeof first, settings->output, header, 0);
    }
    text_copy(header->output, sizeof header->output, first);
    if (settings->log[0] != '\0') {
        region_set_path(header->log, sizeof header->log, settings->log, header, 0);
    }
    if (settings->recording.state != MEMTRACE_RECORD_NONE) {
        *recording = settings->recording;
        recording->state = MEMTRACE_RECORD_NONE;
        region_set_path(recording->path, sizeof recording->path, settings->recording.path, header,
                        forked && settings->run_namespace == 0);
        STORE_RELEASE(&recording->state, settings->recording.state);
    }
    describe_number++;
    /* The magic is last: who finds it finds the rest. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __builtin_memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
}

/* --- threads -----------------------------------------------------------------------------------
 *
 * A thread's record is given to a later thread as it is, like its column in the ledger: nothing is
 * folded or moved, so all sums are right at any moment. A thread that comes gets
 *   1. a new id, as long as there are plenty (REGION_THREADS_FRESH; a forked child's threads go on
 *      behind its parent's, and want some, too),
 *   2. else the id whose thread ended first,
 *   3. else one of the last new ids,
 *   4. else a record past the ids: it is one of the "others" that a block's record names. */

enum { UNDER_HEADER = sizeof(struct memtrace_segment) / sizeof(struct memtrace_foreign_frees) };

struct memtrace_thread_record *region_thread(struct region *region, uint32_t place) {
    struct memtrace_thread_record *leaf =
        place < REGION_THREAD_PLACES
            ? LOAD_ACQUIRE(&region->thread_leaf[place / REGION_THREADS_PER_LEAF])
            : NULL;
    return leaf != NULL && place % REGION_THREADS_PER_LEAF != 0
               ? &leaf[place % REGION_THREADS_PER_LEAF]
               : NULL;
}

uint32_t region_next_thread(struct region *region, uint32_t place) {
    uint32_t ids = LOAD_RELAXED(&region->space->header->thread_count);
    uint32_t past = REGION_THREAD_LIMIT + 1 + LOAD_RELAXED(&region->past_ids);
    while (++place < past) {
        if (place >= ids && place <= REGION_THREAD_LIMIT) {
            place = REGION_THREAD_LIMIT + 1;
        }
        if (region_thread(region, place) != NULL) {
            return place;
        }
    }
    return 0;
}

static struct memtrace_thread_record *region_add_place(struct region *region, uint32_t place,
                                                       uint32_t id) {
    uint32_t leaf = place / REGION_THREADS_PER_LEAF;
    struct memtrace_thread_record *record;
    if (space_leaf(region->space, &region->thread_leaf[leaf], MEMTRACE_SEGMENT_THREADS, leaf,
                   sizeof *record, REGION_THREADS_PER_LEAF) == NULL) {
        return NULL;
    }
    record = region_thread(region, place);
    record->place = place;
    record->id = id;
    return record;
}

/* --- coming ----------------------------------------------------------------------------------- */

/* The next place below `most` that does not lie under a segment's header; 0: none is left. */
static uint32_t region_next_place(uint32_t *count, uint32_t from, uint32_t most) {
    uint32_t place;
    do {
        place = LOAD_RELAXED(count) < most - from
                    ? from + __atomic_fetch_add(count, 1, __ATOMIC_RELAXED)
                    : most;
    } while (place % REGION_THREADS_PER_LEAF == 0 && place < most);
    return place < most ? place : 0;
}

static struct memtrace_thread_record *region_add_id(struct region *region, uint32_t most) {
    uint32_t id = region_next_place(&region->space->header->thread_count, 0, most);
    return id != 0 ? region_add_place(region, id, id) : NULL;
}

static struct memtrace_thread_record *region_add_past_ids(struct region *region) {
    uint32_t place =
        region_next_place(&region->past_ids, REGION_THREAD_LIMIT + 1, REGION_THREAD_PLACES);
    return place != 0 ? region_add_place(region, place, MEMTRACE_THREAD_OTHERS) : NULL;
}

/* The record whose thread ended first; NULL: there is none, or not now. */
static struct memtrace_thread_record *region_take_ended(struct region *region,
                                                        struct region_ended *ended) {
    struct memtrace_thread_record *record;
    if (LOAD_RELAXED(&ended->first) == 0 || !sys_take(&region->thread_lock)) {
        return NULL;
    }
    record = region_thread(region, ended->first);
    if (record != NULL) {
        ended->first = record->next;
        record->next = 0;
        record->earlier++;
    }
    trylock_release(&region->thread_lock);
    return record;
}

struct memtrace_thread_record *region_add_thread(struct region *region, uint32_t column) {
    const struct memtrace_header *header = region->space->header;
    struct memtrace_thread_record *record = NULL;
    if ((record = region_add_id(region, REGION_THREADS_FRESH)) == NULL &&
        (record = region_take_ended(region, &region->ended)) == NULL &&
        (record = region_add_id(region, REGION_THREAD_LIMIT)) == NULL &&
        (record = region_take_ended(region, &region->ended_past_ids)) == NULL &&
        (record = region_add_past_ids(region)) == NULL) {
        space_lost(region->space, MEMTRACE_LOST_THREADS, 1);
        return NULL;
    }
    record->tid = sys_gettid();
    record->column = column;
    record->start_ns = sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns;
    record->end_ns = 0;
    record->name[0] = '\0';
    STORE_RELEASE(&record->state, MEMTRACE_THREAD_ALIVE);
    return record;
}

/* --- going ------------------------------------------------------------------------------------ */

void region_end_thread(struct region *region, struct memtrace_thread_record *record) {
    const struct memtrace_header *header = region->space->header;
    struct region_ended *ended =
        record->place <= REGION_THREAD_LIMIT ? &region->ended : &region->ended_past_ids;
    STORE_RELAXED(&record->end_ns, sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns);
    STORE_RELEASE(&record->state, MEMTRACE_THREAD_ENDED);
    if (!sys_take(&region->thread_lock)) {
        return; /* rather an idle record than a longer wait */
    }
    record->next = 0;
    if (ended->first == 0) {
        STORE_RELAXED(&ended->first, record->place);
    } else {
        region_thread(region, ended->last)->next = record->place;
    }
    ended->last = record->place;
    trylock_release(&region->thread_lock);
}

/* --- sums ------------------------------------------------------------------------------------- */

void region_totals(struct region *region, struct memtrace_point *sum) {
    uint64_t there = LOAD_RELAXED(&region->space->header->inherited_bytes);
    uint64_t freed = 0;
    uint32_t place = 0;
    *sum = (struct memtrace_point){0};
    while ((place = region_next_thread(region, place)) != 0) {
        const struct memtrace_thread_record *record = region_thread(region, place);
        freed += LOAD_RELAXED(&record->counts.free_bytes);
        sum->alloc_bytes += LOAD_RELAXED(&record->counts.alloc_bytes);
        sum->alloc_count += LOAD_RELAXED(&record->counts.alloc_count);
    }
    there += sum->alloc_bytes;
    sum->live_bytes = there > freed ? there - freed : 0;
}

/* --- whose memory they freed ------------------------------------------------------------------ */

/* The leaf of a thread that had this record before; or a new one. */
static struct memtrace_foreign_frees *
region_find_leaf(struct region *region, struct memtrace_thread_record *record, uint32_t index) {
    struct memtrace_segment *segment = NULL;
    for (uint32_t page = record->frees; page != 0; page = segment->previous) {
        segment = (void *)(region->space->base + (uint64_t)page * MEMTRACE_PAGE_SIZE);
        if (segment->index == index) {
            return (void *)segment;
        }
    }
    segment =
        space_segment(region->space, MEMTRACE_SEGMENT_FREES, record->id, index,
                      sizeof(struct memtrace_foreign_frees), REGION_FREES_PER_LEAF + UNDER_HEADER);
    if (segment != NULL) {
        segment->previous = record->frees;
        space_publish(segment);
        record->frees = (uint32_t)(((uint8_t *)segment - region->space->base) / MEMTRACE_PAGE_SIZE);
    }
    return (void *)segment;
}

void region_note_foreign_free(struct region *region, struct memtrace_foreign_frees **leaves,
                              struct memtrace_thread_record *record, uint32_t owner, uint64_t size,
                              uint64_t count) {
    uint32_t index = owner / REGION_FREES_PER_LEAF;
    uint32_t place = owner % REGION_FREES_PER_LEAF;
    if (leaves[index] == NULL) {
        leaves[index] = region_find_leaf(region, record, index);
        if (leaves[index] == NULL) {
            return;
        }
    }
    place = place < UNDER_HEADER ? REGION_FREES_PER_LEAF + place : place;
    counter_add(&leaves[index][place].bytes, size);
    counter_add(&leaves[index][place].count, count);
}

/* The leaves are found in the region itself: another thread's are not ours to look at. */
long region_visit_foreign_frees(struct region *region, uint32_t thread,
                                void (*visit)(uint32_t owner, uint64_t blocks, uint64_t bytes,
                                              void *argument),
                                void *argument) {
    uint64_t end = LOAD_ACQUIRE(&region->space->header->end);
    uint64_t at = MEMTRACE_HEADER_SIZE;
    const struct memtrace_segment *segment;
    long count = 0;
    while ((segment = space_next(region->space, &at, end)) != NULL) {
        const struct memtrace_foreign_frees *items = (const void *)segment;
        if (segment->kind != MEMTRACE_SEGMENT_FREES || segment->owner != thread) {
            continue;
        }
        for (uint32_t i = UNDER_HEADER; i < REGION_FREES_PER_LEAF + UNDER_HEADER; i++) {
            if (LOAD_RELAXED(&items[i].count) != 0) {
                visit(segment->index * REGION_FREES_PER_LEAF + i % REGION_FREES_PER_LEAF,
                      items[i].count, items[i].bytes, argument);
                count++;
            }
        }
    }
    return count;
}

/* --- pools and the timeline ------------------------------------------------------------------- */

static int region_is_pool(const char *kept, const char *name) {
    size_t i = 0;
    while (i < sizeof(struct memtrace_pool) - 1 && kept[i] != '\0' && kept[i] == name[i]) {
        i++;
    }
    return kept[i] == name[i] || i == sizeof(struct memtrace_pool) - 1;
}

static int region_find_pool(const struct region *region, const char *name) {
    uint32_t count = LOAD_ACQUIRE(&region->space->header->pool_count);
    for (uint32_t i = 1; i <= count; i++) {
        if (region_is_pool(region->pools[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

int region_pool(struct region *region, const char *name) {
    struct memtrace_header *header = region->space->header;
    int pool = region_find_pool(region, name);
    if (pool >= 0 || region->space->is_private || !sys_take(&region->lock)) {
        return pool;
    }
    pool = region_find_pool(region, name);
    if (pool < 0 && header->pool_count < REGION_POOL_LIMIT && /* most programs name none */
        space_leaf(region->space, &region->pools, MEMTRACE_SEGMENT_POOLS, 0, sizeof *region->pools,
                   REGION_POOL_LIMIT + 1) != NULL) {
        pool = (int)header->pool_count + 1;
        text_copy(region->pools[pool].name, sizeof region->pools[pool].name, name);
        STORE_RELEASE(&header->pool_count, (uint32_t)pool);
    }
    trylock_release(&region->lock);
    return pool;
}

void region_sample(struct region *region, const struct memtrace_point *sample) {
    struct memtrace_timeline *timeline = region->timeline;
    struct proc_memory memory;
    if (!trylock_take(&region->lock)) {
        return;
    }
    if (timeline->count == MEMTRACE_TIMELINE_POINTS) { /* each second one stays */
        uint32_t kept = 0;
        for (uint32_t i = 1; i < timeline->count; i += 2) {
            timeline->point[kept++] = timeline->point[i];
        }
        STORE_RELEASE(&timeline->count, kept);
        timeline->churn_step_bytes *= 2;
    }
    timeline->point[timeline->count] = *sample;
    proc_read_memory(&memory);
    timeline->point[timeline->count].resident_bytes = memory.resident;
    STORE_RELEASE(&timeline->count, timeline->count + 1);
    trylock_release(&region->lock);
}
