/* SPDX-License-Identifier: MIT */
/* region.c: making the profile region. See region.h. */
#define _GNU_SOURCE
#include "runtime/record/region.h"

#include "runtime/base/machine.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/record/identity.h"
#include "runtime/record/resident.h"

#include <errno.h>
#include <fcntl.h>

enum {
    FIRST_CHURN_STEP = 1 << 20,
    UNDER_HEADER = sizeof(struct memtrace_segment) / sizeof(struct memtrace_foreign_frees),
};

/* A folder that is ours alone. */
static long own_folder(const char *path) {
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
static void name_region(struct text *path, const char *folder, unsigned number) {
    text_init(path, path->start, path->capacity);
    text_add(path, folder);
    text_add(path, "/");
    text_add_number(path, sys_getpid());
    text_add(path, ".");
    text_add_number(path, identity_start_ticks());
    if (number > 1) {
        text_add(path, ".");
        text_add_number(path, number);
    }
    text_add(path, ".mtp");
}

static long open_in(const char *folder, struct text *path) {
    enum { MOST_PROGRAMS = 64 };
    long result = own_folder(folder);
    for (unsigned number = 1; result == 0 || (result == -EEXIST && number <= MOST_PROGRAMS);
         number++) {
        name_region(path, folder, number);
        result = path->cut ? -ENAMETOOLONG
                           : sys_open(path->start, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (result == 0) { /* the program closed its stdin: 0 is a descriptor too */
            break;
        }
    }
    return result;
}

static void folder_of_user(struct text *text, const char *parent) {
    text_init(text, text->start, text->capacity);
    text_add(text, parent);
    text_add(text, "/memtrace-");
    text_add_number(text, sys_getuid());
}

static long try_folder(struct space *space, const char *folder, const struct region_heirs *heirs) {
    char buffer[256];
    struct text path;
    long result;
    text_init(&path, buffer, sizeof buffer);
    result = open_in(folder, &path);
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

static long open_space(struct space *space, const struct settings *settings,
                       const struct region_heirs *heirs, uint32_t *flags) {
    char buffer[256];
    struct text folder;
    long result;
    text_init(&folder, buffer, sizeof buffer);
    if (settings->folder[0] != '\0') {
        return try_folder(space, settings->folder, heirs);
    }
    folder_of_user(&folder, "/dev/shm");
    result = try_folder(space, buffer, heirs);
    if (result < 0) {
        folder_of_user(&folder, "/tmp");
        result = try_folder(space, buffer, heirs);
        *flags |= result >= 0 ? (uint32_t)MEMTRACE_FLAG_DISK : 0;
    }
    return result;
}

static struct memtrace_thread_record *others(struct region *region) {
    return region_thread(region, MEMTRACE_THREAD_OTHERS);
}

static int add_tables(struct region *region) {
    struct space *space = region->space;
    struct memtrace_timeline *timeline =
        space_segment(space, MEMTRACE_SEGMENT_TIMELINE, 0, 0, sizeof *timeline, 1);
    struct memtrace_pool *pools =
        space_segment(space, MEMTRACE_SEGMENT_POOLS, 0, 0, sizeof *pools, REGION_POOL_LIMIT + 1);
    void *threads = space_segment(space, MEMTRACE_SEGMENT_THREADS, 0, 0,
                                  sizeof(struct memtrace_thread_record), REGION_THREADS_PER_LEAF);
    if (timeline == NULL || pools == NULL || threads == NULL) {
        return -1;
    }
    space_publish(timeline);
    space_publish(pools);
    space_publish(threads);
    region->timeline = timeline;
    region->pools = pools;
    region->thread_leaf[0] = threads;
    others(region)->id = MEMTRACE_THREAD_OTHERS;
    text_copy(others(region)->name, sizeof others(region)->name, "others");
    timeline->churn_step_bytes = FIRST_CHURN_STEP;
    return 0;
}

static void fill_header(struct memtrace_header *header, const struct settings *settings,
                        uint32_t flags) {
    header->version = MEMTRACE_FORMAT_VERSION;
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
    header->process_start_ticks = identity_start_ticks();
    header->start_realtime_ns = sys_clock_ns(CLOCK_REALTIME);
    header->start_monotonic_ns = sys_clock_ns(CLOCK_MONOTONIC);
    header->every_ns = settings->every_ns;
    header->churn_limit_bytes = settings->churn_bytes;
    header->top = settings->top;
    header->summary = settings->summary;
    header->log_size_bytes = settings->log_size_bytes;
    header->limit = settings->limit;
    header->owner = settings->owner;
    header->run = (struct memtrace_run){.id = settings->run,
                                        .pid_namespace = identity_pid_namespace(),
                                        .children = settings->children};
}

int region_create(struct region *region, struct space *space, const struct settings *settings,
                  const struct region_heirs *heirs) {
    uint32_t flags = heirs != NULL ? MEMTRACE_FLAG_FORKED : 0;
    long result = open_space(space, settings, heirs, &flags);
    *region = (struct region){.space = space, .settings = settings};
    if (result < 0) {
        char number[24];
        struct text text;
        text_init(&text, number, sizeof number);
        text_add_number(&text, (uint64_t)-result);
        log_error("no place for the profile while the program runs: neither /dev/shm nor /tmp (or "
                  "MEMTRACE_REGION_DIR) can be used, error ",
                  number, "; the program goes on without");
        return -1;
    }
    fill_header(space->header, settings, flags);
    if (add_tables(region) != 0) {
        sys_unlink(space->path);
        return -1;
    }
    return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static uint32_t describe_number; /* %n: regions this process described before */

static void expand(struct text *out, const char *pattern, const struct memtrace_header *header) {
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%' || at[1] == '\0') {
            text_add_bytes(out, at, 1);
            continue;
        }
        at++;
        if (*at == 'p') {
            text_add_number(out, header->pid);
        } else if (*at == 'e') {
            text_add(out, text_base_name(header->executable));
        } else if (*at == 't') {
            text_add_number(out, header->start_realtime_ns / 1000000000u);
        } else if (*at == 'n') {
            text_add_number(out, describe_number);
        } else {
            text_add_bytes(out, at - (*at != '%'), *at == '%' ? 1 : 2);
        }
    }
}

static int has_pid(const char *pattern) {
    for (; *pattern != '\0'; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            return 1;
        }
        pattern += pattern[0] == '%' && pattern[1] == '%';
    }
    return 0;
}

/* A child's files get .PID where the pattern has none. */
static void set_path(char *to, size_t capacity, const char *pattern,
                     const struct memtrace_header *header, int is_child) {
    struct text text;
    text_init(&text, to, capacity);
    if (pattern[0] != '/') {
        char folder[2048];
        if (sys_getcwd(folder, sizeof folder) > 0 && folder[0] == '/') {
            text_add(&text, folder);
            text_add(&text, folder[1] != '\0' ? "/" : "");
        }
    }
    expand(&text, pattern, header);
    if (is_child && !has_pid(pattern)) {
        text_add(&text, ".");
        text_add_number(&text, header->pid);
    }
}

static void read_command(struct memtrace_header *header) {
    long fd = sys_open("/proc/self/cmdline", O_RDONLY, 0);
    if (fd >= 0) {
        sys_read((int)fd, header->command, sizeof header->command - 2);
        sys_close((int)fd);
    }
}

static void describe_recording(struct memtrace_header *header, const struct settings *settings,
                               int forked) {
    struct memtrace_recording *recording = region_recording(header);
    *recording = settings->recording;
    recording->state = MEMTRACE_RECORD_NONE;
    set_path(recording->path, sizeof recording->path, settings->recording.path, header,
             forked && settings->run_namespace == 0);
    STORE_RELEASE(&recording->state, settings->recording.state);
}

/* All profiles of a run go to the path of its first process (finish.c). */
static void describe_output(struct memtrace_header *header, const struct settings *settings,
                            int forked) {
    static char first[sizeof header->output];
    if (!forked) {
        set_path(first, sizeof first, settings->output, header, 0);
    }
    text_copy(header->output, sizeof header->output, first);
}

void region_describe(struct region *region, int forked) {
    struct memtrace_header *header = region->space->header;
    const struct settings *settings = region->settings;
    long length = sys_readlink("/proc/self/exe", header->executable, sizeof header->executable - 1);
    header->executable[length > 0 ? length : 0] = '\0';
    if (length <= 0) {
        text_copy(header->executable, sizeof header->executable, "unknown");
    }
    read_command(header);
    describe_output(header, settings, forked);
    if (settings->log[0] != '\0') {
        set_path(header->log, sizeof header->log, settings->log, header, 0);
    }
    if (settings->recording.state != MEMTRACE_RECORD_NONE) {
        describe_recording(header, settings, forked);
    }
    describe_number++;
    /* The magic is last: who finds it finds the rest. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __builtin_memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
}

/* --- threads ---------------------------------------------------------------------------------- */

struct memtrace_thread_record *region_thread(struct region *region, uint32_t id) {
    struct memtrace_thread_record *leaf =
        id < REGION_THREAD_LIMIT ? LOAD_ACQUIRE(&region->thread_leaf[id / REGION_THREADS_PER_LEAF])
                                 : NULL;
    return leaf != NULL && id % REGION_THREADS_PER_LEAF != 0 ? &leaf[id % REGION_THREADS_PER_LEAF]
                                                             : NULL;
}

static int open_thread_leaf(struct region *region, uint32_t index) {
    struct memtrace_thread_record *none = NULL;
    void *segment;
    if (LOAD_ACQUIRE(&region->thread_leaf[index]) != NULL) {
        return 0;
    }
    segment = space_segment(region->space, MEMTRACE_SEGMENT_THREADS, 0, index,
                            sizeof(struct memtrace_thread_record), REGION_THREADS_PER_LEAF);
    if (segment == NULL) {
        return -1;
    }
    space_publish(segment);
    if (!__atomic_compare_exchange_n(&region->thread_leaf[index], &none,
                                     (struct memtrace_thread_record *)segment, 0, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)) {
        ((struct memtrace_segment *)segment)->kind = 0;
    }
    return 0;
}

struct memtrace_thread_record *region_add_thread(struct region *region, uint32_t column) {
    struct memtrace_header *header = region->space->header;
    struct memtrace_thread_record *record;
    uint32_t id;
    do {
        id = LOAD_RELAXED(&header->thread_count) < REGION_THREAD_LIMIT
                 ? __atomic_fetch_add(&header->thread_count, 1, __ATOMIC_RELAXED)
                 : REGION_THREAD_LIMIT;
    } while (id % REGION_THREADS_PER_LEAF == 0); /* the place under a segment's header */
    if (id >= REGION_THREAD_LIMIT || open_thread_leaf(region, id / REGION_THREADS_PER_LEAF) != 0) {
        space_lost(region->space, MEMTRACE_LOST_THREADS, 1);
        return others(region);
    }
    record = region_thread(region, id);
    record->id = id;
    record->tid = sys_gettid();
    record->column = column;
    record->start_ns = sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns;
    STORE_RELEASE(&record->state, MEMTRACE_THREAD_ALIVE);
    return record;
}

void region_note_foreign_free(struct region *region, struct memtrace_foreign_frees **leaves,
                              uint32_t thread, uint32_t owner, uint64_t size) {
    uint32_t index = owner / REGION_FREES_PER_LEAF;
    uint32_t place = owner % REGION_FREES_PER_LEAF;
    if (leaves[index] == NULL) {
        void *segment = space_segment(region->space, MEMTRACE_SEGMENT_FREES, thread, index,
                                      sizeof(struct memtrace_foreign_frees),
                                      REGION_FREES_PER_LEAF + UNDER_HEADER);
        if (segment == NULL) {
            return;
        }
        space_publish(segment);
        leaves[index] = segment;
    }
    place = place < UNDER_HEADER ? REGION_FREES_PER_LEAF + place : place;
    COUNTER_ADD(&leaves[index][place].bytes, size);
    COUNTER_ADD(&leaves[index][place].count, 1);
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

static int same_name(const char *kept, const char *name) {
    size_t i = 0;
    while (i < sizeof(struct memtrace_pool) - 1 && kept[i] != '\0' && kept[i] == name[i]) {
        i++;
    }
    return kept[i] == name[i] || i == sizeof(struct memtrace_pool) - 1;
}

static int find_pool(const struct region *region, const char *name) {
    uint32_t count = LOAD_ACQUIRE(&region->space->header->pool_count);
    for (uint32_t i = 1; i <= count; i++) {
        if (same_name(region->pools[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

int region_pool(struct region *region, const char *name) {
    struct memtrace_header *header = region->space->header;
    int pool = find_pool(region, name);
    if (pool >= 0 || !sys_take(&region->lock)) {
        return pool;
    }
    pool = find_pool(region, name);
    if (pool < 0 && header->pool_count < REGION_POOL_LIMIT) {
        pool = (int)header->pool_count + 1;
        text_copy(region->pools[pool].name, sizeof region->pools[pool].name, name);
        STORE_RELEASE(&header->pool_count, (uint32_t)pool);
    }
    trylock_release(&region->lock);
    return pool;
}

static void thin(struct memtrace_timeline *timeline) {
    uint32_t kept = 0;
    for (uint32_t i = 1; i < timeline->count; i += 2) {
        timeline->point[kept++] = timeline->point[i];
    }
    STORE_RELEASE(&timeline->count, kept);
    timeline->churn_step_bytes *= 2;
}

void region_sample(struct region *region, const struct memtrace_point *sample) {
    struct memtrace_timeline *timeline = region->timeline;
    if (!trylock_take(&region->lock)) {
        return;
    }
    if (timeline->count == MEMTRACE_TIMELINE_POINTS) {
        thin(timeline);
    }
    timeline->point[timeline->count] = *sample;
    timeline->point[timeline->count].resident_bytes = resident_now();
    STORE_RELEASE(&timeline->count, timeline->count + 1);
    trylock_release(&region->lock);
}

void region_totals(struct region *region, struct memtrace_point *sum) {
    uint32_t count = LOAD_RELAXED(&region->space->header->thread_count);
    uint64_t freed = 0;
    *sum = (struct memtrace_point){0};
    for (uint32_t id = 1; id < count && id < REGION_THREAD_LIMIT; id++) {
        const struct memtrace_thread_record *record = region_thread(region, id);
        if (record != NULL) {
            freed += LOAD_RELAXED(&record->free_bytes);
            sum->alloc_bytes += LOAD_RELAXED(&record->alloc_bytes);
            sum->alloc_count += LOAD_RELAXED(&record->alloc_count);
        }
    }
    sum->live_bytes = sum->alloc_bytes > freed ? sum->alloc_bytes - freed : 0;
}
