/* SPDX-License-Identifier: MIT */
/* region.c: making the profile region. See region.h. */
#define _GNU_SOURCE
#include "runtime/record/region.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"
#include "runtime/record/proc.h"

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
    text_add_number(path, proc_start_ticks());
    if (number > 1) {
        text_add(path, ".");
        text_add_number(path, number);
    }
    text_add(path, ".mtp");
}

static long open_in(const char *folder, struct text *path) {
    enum { MOST_PROGRAMS = 1000 };
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

static void folder_of_user(struct text *text, const char *parent, unsigned number) {
    text_init(text, text->start, text->capacity);
    text_add(text, parent);
    text_add(text, "/memtrace-");
    text_add_number(text, sys_getuid());
    if (number > 1) {
        text_add(text, ".");
        text_add_number(text, number);
    }
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

/* A folder of that name may be another's: root of a user namespace has the number of the other
 * root. */
static long try_parent(struct space *space, const char *parent, const struct region_heirs *heirs) {
    char buffer[256];
    struct text folder;
    long result = -EPERM;
    text_init(&folder, buffer, sizeof buffer);
    for (unsigned number = 1; result == -EPERM && number <= MEMTRACE_REGION_FOLDERS; number++) {
        folder_of_user(&folder, parent, number);
        result = try_folder(space, buffer, heirs);
    }
    return result;
}

static long open_space(struct space *space, const struct settings *settings,
                       const struct region_heirs *heirs, uint32_t *flags) {
    long result;
    if (settings->folder[0] != '\0') {
        return try_folder(space, settings->folder, heirs);
    }
    result = try_parent(space, "/dev/shm", heirs);
    if (result < 0) {
        result = try_parent(space, "/tmp", heirs);
        *flags |= result >= 0 ? (uint32_t)MEMTRACE_FLAG_DISK : 0;
    }
    return result;
}

static int add_timeline(struct region *region) {
    if (space_leaf(region->space, &region->timeline, MEMTRACE_SEGMENT_TIMELINE, 0,
                   sizeof *region->timeline, 1) == NULL) {
        return -1;
    }
    region->timeline->churn_step_bytes = FIRST_CHURN_STEP;
    return 0;
}

static int add_threads(struct region *region) {
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

static void fill_header(struct memtrace_header *header, const struct settings *settings,
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
static void identify(struct memtrace_header *header) {
    header->process_start_ticks = proc_start_ticks();
    header->run.pid_namespace = proc_pid_namespace();
}

static void tell_failure(const struct settings *settings, long error) {
    char number[24];
    struct text text;
    if (error == -EPERM && settings->folder[0] != '\0') {
        log_error("the folder ", settings->folder,
                  " (MEMTRACE_REGION_DIR) is not this user's alone (chmod 700 makes it so); the "
                  "program goes on without a profile");
        return;
    }
    text_init(&text, number, sizeof number);
    text_add_number(&text, (uint64_t)-error);
    log_error("no place for the profile while the program runs: neither /dev/shm nor /tmp (or "
              "MEMTRACE_REGION_DIR) can be used, error ",
              number, "; the program goes on without");
}

int region_create(struct region *region, struct space *space, const struct settings *settings) {
    uint32_t flags = 0;
    long result = open_space(space, settings, NULL, &flags);
    *region = (struct region){.space = space, .settings = settings};
    if (result < 0) {
        tell_failure(region->settings, result);
        return -1;
    }
    fill_header(space->header, settings, flags);
    identify(space->header);
    region->birth_zero_ns = space->header->birth_zero_ns = space->header->start_monotonic_ns;
    space_prepare(space, START_BYTES, SYS_PAGES_NOW);
    if (add_timeline(region) != 0 || add_threads(region) != 0) {
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
    fill_header(region->space->header, region->settings, MEMTRACE_FLAG_FORKED);
    region->space->header->birth_zero_ns = region->birth_zero_ns;
    return add_threads(region);
}

int region_grow(struct region *region, const struct region_heirs *heirs) {
    struct space *space = region->space;
    struct memtrace_header *kept = sys_map(sizeof *kept);
    uint32_t flags = 0;
    /* Where filters deny it the parent's cannot be read, or nobody could tell whose the new one is.
     */
    long result = sys_readable(space->header) && sys_getpid() != 0 ? -ENOMEM : -EPERM;
    if (result == -ENOMEM && kept != NULL &&
        (region->timeline != NULL || add_timeline(region) == 0)) {
        *kept = *space->header;
        result = open_space(space, region->settings, heirs, &flags);
        *space->header = *kept; /* of the file, or again of the private space */
        space->header->flags |= flags;
    }
    if (kept != NULL) {
        sys_unmap(kept, sizeof *kept);
    }
    if (result < 0) {
        tell_failure(region->settings, result);
        return -1;
    }
    identify(space->header);
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
            text_add(out, memtrace_program(header));
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

/* A program that was attached to may have written a title over its arguments: then the rest of
 * their place is empty, and none of them. */
static void read_command(struct memtrace_header *header) {
    long fd = sys_open("/proc/self/cmdline", O_RDONLY, 0);
    long size = 0;
    if (fd >= 0) {
        size = sys_read((int)fd, header->command, sizeof header->command - 2);
        sys_close((int)fd);
    }
    while ((header->flags & MEMTRACE_FLAG_ATTACHED) != 0 && size > 1 &&
           header->command[size - 1] == '\0' && header->command[size - 2] == '\0') {
        size--;
    }
    header->command_bytes = size > 0 ? (uint64_t)size : 0;
}

/* A file with several names is called by the one that was run; a script is what its interpreter's
 * file is called. */
static void read_name(struct memtrace_header *header) {
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
    if (fd >= 0) {
        sys_close((int)fd);
    }
    if (own >= 0) {
        sys_close((int)own);
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
    if (proc_program_file(header->executable, sizeof header->executable) == 0) {
        text_copy(header->executable, sizeof header->executable, "unknown");
    }
    read_command(header);
    read_name(header);
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
