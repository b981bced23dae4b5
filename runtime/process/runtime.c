/* SPDX-License-Identifier: MIT */
/*
 * runtime.c: coming up and going down. How a forked child lives on is in child.c.
 *
 * Up: at the first event or in the constructor, whichever is first. Down: by an exit handler that
 * was registered before the loader's own, so that it runs after every destructor of the program
 * (exit handlers run last in, first out; constructors run before __libc_start_main registers
 * _dl_fini).
 */
#define _GNU_SOURCE
#include "runtime/entry/runtime.h"

#include "runtime/base/handed.h"
#include "runtime/base/limits.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/proc.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/mapping.h"
#include "runtime/entry/othermalloc.h"
#include "runtime/entry/preexisting.h"
#include "runtime/entry/real.h"
#include "runtime/entry/recording_switch.h"
#include "runtime/entry/switch.h"
#include "runtime/follow/allocators.h"
#include "runtime/follow/pool.h"
#include "runtime/heap/estimates.h"
#include "runtime/heap/sampled_heap.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"
#include "runtime/process/settings.h"
#include "runtime/process/signals.h"
#include "runtime/reach/reach.h"
#include "runtime/record/finish.h"
#include "runtime/stack/libunwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct runtime runtime;
uint32_t runtime_attached;

static void runtime_end_counting(void) {
    STORE_RELAXED(&runtime.gate, (uintptr_t)GATE_NONE);
    STORE_RELEASE(&runtime.state, (uint32_t)RUNTIME_OFF);
    malloc_prepare(MALLOC_OFF);
}

/* --- up --------------------------------------------------------------------------------------- */

static int make_alive_page(void) {
    if (runtime.alive == NULL) {
        runtime.alive = sys_map(MEMTRACE_PAGE_SIZE);
        if (runtime.alive == NULL || sys_wipe_on_fork(runtime.alive, MEMTRACE_PAGE_SIZE) != 0) {
            return -1;
        }
        own_maps_keep(runtime.alive);
    }
    return 0;
}

/* Contexts below the root, for what has no path. The inner one comes first: then the other lies in
 * the leaf that the program's first paths are charged in, and can be charged to where there is no
 * more room for anything. 0, or -1: no room. */
static int make_own_contexts(void) {
    struct context_id root = {0};
    struct context_id mapping =
        context_child(&runtime.tree, root, MEMTRACE_FRAME_MAPPING, CONTEXT_INNER);
    struct context_id unknown =
        context_child(&runtime.tree, root, MEMTRACE_FRAME_UNKNOWN, CONTEXT_CHARGED);
    runtime.unknown_context = unknown.value;
    if (runtime_is_attached()) {
        preexisting_prepare();
    }
    return context_is_cut(mapping) || context_is_cut(unknown) ? -1 : 0;
}

void runtime_tell_tables(void) {
    struct memtrace_header *header = runtime.space.header;
    own_maps.region = (uintptr_t)runtime.space.base;
    header->own_maps = (uintptr_t)&own_maps;
    header->shadow_heap = (uintptr_t)runtime.heap.root;
    header->pool_heap = (uintptr_t)runtime.pools.root;
    header->foreign_heap = (uintptr_t)runtime.foreign.root;
    header->flags |= allocators_flags();
}

static int make_structures(void) {
    struct memtrace_header *header = runtime.space.header;
    const char *preload = handed_variable(environ, "LD_PRELOAD=");
    module_init(&runtime.modules, &runtime.space, header->executable);
    rule_init(&runtime.rules, &runtime.modules, &runtime.tree.areas);
    runtime.rules.by_frame_pointer = MACHINE_HAS_FP_CHAIN && runtime.settings.unwind == UNWIND_FP;
    context_init(&runtime.tree, &runtime.space, (uint32_t)runtime.settings.context_limit);
    runtime.world = (struct walk_world){
        .tree = &runtime.tree,
        .rules = &runtime.rules,
        .space = &runtime.space,
        .own_frames_only = runtime.settings.stacks == MEMTRACE_STACKS_SHORT,
    };
    runtime.heap.numbered = runtime.pools.numbered = runtime.foreign.numbered =
        runtime.settings.recording.state != MEMTRACE_RECORD_NONE ||
        limits_memory() >= UINTPTR_MAX; /* else it is the program's: ulimit -v, -d */
    if (heap_init(&runtime.heap, MEMTRACE_FINE_SHIFT) != 0 ||
        ledger_init(&runtime.ledger, &runtime.space) != 0 || make_own_contexts() != 0) {
        log_error("not enough address space to profile (ulimit -v?); the program goes on without");
        return -1;
    }
    runtime_tell_tables();
    header->flags |= runtime_is_attached() ? (uint32_t)MEMTRACE_FLAG_ATTACHED : 0;
    header->flags |= attach_is_collected() ? (uint32_t)MEMTRACE_FLAG_OUTSIDE : 0;
    if (preload != NULL && text_holds(preload, "libmemtrace")) {
        header->flags |= MEMTRACE_FLAG_PRELOADED;
    }
    header->flags |= real.is_glibc ? 0 : (uint32_t)MEMTRACE_FLAG_FOREIGN_MALLOC;
    return 0;
}

static void at_exit(void *unused) {
    (void)unused;
    /* In a forked child the loader's lock may be another thread's of the parent, for ever. */
    if (runtime_is_ready() && !child_is_light() &&
        (runtime.space.header->flags & MEMTRACE_FLAG_FORKED) == 0) {
        loader_note_objects();
    }
    runtime_finish(MEMTRACE_STATE_ENDED);
}

static void at_quick_exit_handler(void) {
    runtime_finish(MEMTRACE_STATE_ENDED);
}

/* Whoever watches us: the `memtrace run` that we belong to, if it is there and can collect us (its
 * pid means nothing in other namespaces, and another user's region is nothing to it); else a
 * companion, if there is work for one. */
static void find_collector(void) {
    struct memtrace_header *header = runtime.space.header;
    runtime.has_companion = 0;
    if (runtime.settings.collector_pid != 0 &&
        runtime.settings.run_namespace == header->run.pid_namespace &&
        sys_may_signal(runtime.settings.collector_pid)) {
        header->collector_pid = runtime.settings.collector_pid;
    } else if (attach_is_collected()) {
        runtime.has_companion = 1; /* it comes as soon as it sees the region */
    } else if (header->every_ns != 0 || header->churn_limit_bytes != 0 ||
               header->limit.bytes != 0 || header->limit.percent != 0 ||
               region_recording(header)->state != MEMTRACE_RECORD_NONE) {
        runtime.has_companion = companion_start(&runtime.region, environ) == 0;
    }
}

/* Before the first thread joins. Without anybody to write it down nothing is recorded. */
static void find_recorder(void) {
    struct memtrace_header *header = runtime.space.header;
    recorder_fork(&runtime.recorder);
    if (region_recording(header)->state == MEMTRACE_RECORD_NONE) {
        return;
    }
    if (header->collector_pid == 0 && !runtime.has_companion) {
        STORE_RELEASE(&region_recording(header)->state, (uint32_t)MEMTRACE_RECORD_NONE);
        return;
    }
    recorder_init(&runtime.recorder, &runtime.space);
}

static int runtime_start(void) {
    static int ends_at_quick_exit; /* also where it is set up again */
    log_note_stderr();
    machine_start();
    if (make_alive_page() != 0 ||
        region_create(&runtime.region, &runtime.space, &runtime.settings) != 0) {
        return -1;
    }
    region_describe(&runtime.region, 0);
    runtime.clock_word = clock_find();
    if (make_structures() != 0) { /* what was reserved is the program's again */
        sys_unlink(runtime.space.path);
        space_give_up(&runtime.space);
        heap_give_up(&runtime.heap);
        return -1;
    }
    runtime_find_helpers();
    thread_init_process();
    if (!runtime_is_attached()) { /* else it would be the first to run: attach.c */
        libc_at_end(at_exit);
    }
    if (!ends_at_quick_exit) {
        ends_at_quick_exit = at_quick_exit(at_quick_exit_handler) == 0;
    }
    if (runtime.settings.zero) {
        real_zero();
    }
    switch_start(&runtime.settings);
    allocators_name_pools();
    *runtime.alive = 1;
    STORE_RELEASE(&runtime.state, (uint32_t)RUNTIME_READY);
    signals_start(&runtime.settings.signals);
    return 0;
}

void runtime_find_helpers(void) {
    find_collector();
    find_recorder();
}

/* --- how stacks are walked -------------------------------------------------------------------- */

/* A language whose collector finds roots by the return addresses on the stack must find them
 * unchanged: OCaml, whose programs export their table of them. */
extern const char caml_frametable[] __attribute__((weak));

/* Sanitizers unwind at each allocation, to show the program's own stacks when they find something;
 * valgrind shows stacks of its own, and no guard's table is on them. */
static int unwind_can_patch(void) {
    if (!MACHINE_HAS_GUARDS || !libc_allows_guards() || sys_has_shadow_stack()) {
        return 0;
    }
    return runtime.settings.unwind == UNWIND_PATCH ||
           (caml_frametable == NULL && __asan_init == NULL && __lsan_init == NULL &&
            !sys_in_valgrind());
}

/* Once, from our constructor: until then stacks are verified. */
static void unwind_choose(void) {
    switch (runtime.settings.unwind) {
    case UNWIND_AUTO:
        runtime.world.patches = unwind_can_patch();
        break;
    case UNWIND_PATCH:
        runtime.world.patches = unwind_can_patch();
        if (!runtime.world.patches) {
            log_line("MEMTRACE_UNWIND=patch: not with a hardware shadow stack, on this machine or "
                     "with this C library; stacks are verified");
        }
        break;
    case UNWIND_LIBUNWIND:
        thread_stop_self(); /* what the loader allocates is not the program's */
        runtime.world.libunwind = libunwind_load();
        thread_start_self();
        if (runtime.world.libunwind == NULL) {
            log_line("MEMTRACE_UNWIND=libunwind: libunwind.so.8 cannot be loaded; stacks are "
                     "verified");
        }
        break;
    case UNWIND_FP:
        if (!MACHINE_HAS_FP_CHAIN) {
            log_line("MEMTRACE_UNWIND=fp: on this machine frame pointers make no chain; stacks are "
                     "verified");
        }
        break;
    default:
        break;
    }
}

/* --- who comes first -------------------------------------------------------------------------- */

/* The first who comes sets it up. */
static int runtime_wake(char **settings) {
    uint32_t asleep = RUNTIME_ASLEEP;
    int started;
    if (!__atomic_compare_exchange_n(&runtime.state, &asleep, (uint32_t)RUNTIME_STARTING, 0,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return 0;
    }
    started = settings_read(&runtime.settings, settings) && runtime_start() == 0;
    if (!started) {
        runtime_end_counting();
    }
    return started;
}

int runtime_attach(char **settings) {
    if (!runtime_wake(settings)) {
        return 0;
    }
    unwind_choose();
    return 1;
}

int runtime_ensure(void) {
    uint32_t state = LOAD_ACQUIRE(&runtime.state);
    int started;
    if (LIKELY(state == RUNTIME_READY && *runtime.alive != 0)) {
        return 1;
    }
    if (state == RUNTIME_READY && runtime.settings.children != MEMTRACE_CHILDREN_ALL) {
        runtime_end_counting();
        return 0;
    }
    if (state == RUNTIME_READY) { /* a forked child: this thread is its only one */
        struct sys_signals mask = sys_block_signals();
        runtime.state = RUNTIME_STARTING;
        started = child_start() == 0;
        if (!started) {
            child_tell_unprofiled();
            runtime_end_counting();
        }
        sys_restore_signals(mask);
        return started;
    }
    if (state != RUNTIME_ASLEEP || runtime_is_attached() || environ == NULL || real.free == NULL ||
        !runtime_wake(environ)) {
        return 0;
    }
    allocators_lead(NULL); /* before other constructors call them */
    return 1;
}

void runtime_forget(void) {
    struct runtime *old = &runtime;
    uint32_t *alive = old->alive;
    struct memtrace_malloc malloc_by = old->malloc_by;
    space_give_up(&old->space);
    thread_forget_all();
    mapping_forget();
    sampled_heap_forget();
    estimates_fork();
    event_forget_modules();
    recording_switch_fork();
    own_maps_give_up(sys_unmap);
    heap_forget();
    allocators_forget();
    own_maps.region = 0;
    STORE_RELAXED(&old->gate, (uintptr_t)GATE_NONE);
    __builtin_memset(old, 0, offsetof(struct runtime, state)); /* all but the state */
    __builtin_memset(&old->gate, 0, sizeof *old - offsetof(struct runtime, gate));
    old->alive = alive;
    old->malloc_by = malloc_by;
    if (alive != NULL) {
        *alive = 0;
    }
    STORE_RELEASE(&old->state, (uint32_t)RUNTIME_ASLEEP);
}

/* By now everything that the program starts with is loaded. */
static void look_for_other_malloc(void) {
    struct memtrace_header *header = runtime.space.header;
    if ((header->flags & MEMTRACE_FLAG_NAMED) == 0) {
        othermalloc_look(&runtime.malloc_by);
    }
    if (runtime.malloc_by.place == MEMTRACE_MALLOC_PROGRAM &&
        othermalloc_calls_next(header->executable)) {
        runtime.malloc_by.place = MEMTRACE_MALLOC_COUNTED;
    }
    header->malloc_by = runtime.malloc_by;
    /* Of what a run follows its summary tells, once. */
    if (header->collector_pid == 0 || header->collector_pid == header->parent_pid) {
        othermalloc_warn(&runtime.malloc_by, header->executable);
    }
}

/* At the start of a program that wants nothing of us: told without a system call, for which a
 * filter of the program before may kill (exec_environment.c). Who attaches comes on another stack.
 */
static int is_started_off(void) {
    enum { FIRST_BYTES = 1 << 20 };
    uintptr_t entry;
    return libc_stack_top(&entry) - (uintptr_t)__builtin_frame_address(0) < FIRST_BYTES &&
           settings_are_off(environ);
}

/* Runs last of all constructors: those of libraries may have woken us already. */
__attribute__((constructor)) static void wake_up(int argc, char **argv, char **envp) {
    int saved = errno;
    if (!is_started_off() && attach_is_coming()) {
        return;
    }
    thread_pass_through(1);
    real_ensure();
    if (runtime_ensure()) {
        unwind_choose();
        look_for_other_malloc();
        loader_note_objects();
    }
    thread_pass_through(0);
    if (environ != NULL) {
        environ = settings_clean_environment(environ, libc_is_initial(environ, argc, argv, envp));
    }
    errno = saved;
}

/* --- down ------------------------------------------------------------------------------------- */

static int runtime_is_ours(void) {
    return runtime_is_ready() && runtime.space.header->pid == sys_getpid(); /* no vfork child */
}

/* `memtrace run` in another namespace of pids: here its number is nobody's, or another's. */
static int is_elsewhere(const struct memtrace_header *header, uint32_t collector_pid) {
    return collector_pid == runtime.settings.collector_pid && runtime.settings.run_namespace != 0 &&
           runtime.settings.run_namespace != header->run.pid_namespace;
}

/* Where it cannot be seen we write the profile ourselves. */
static int has_collector(const struct memtrace_header *header) {
    uint32_t pid = LOAD_RELAXED(&header->collector_pid);
    return pid != 0 && pid == runtime.settings.collector_pid && !is_elsewhere(header, pid) &&
           sys_pid_alive(pid);
}

/* A collector that was started has not said its name yet; one that has may be gone. */
static int is_collected(const struct memtrace_header *header) {
    uint32_t pid = LOAD_RELAXED(&header->collector_pid);
    if (pid == 0) {
        return runtime.has_companion;
    }
    return is_elsewhere(header, pid)
               ? recorder_is_on(&runtime.recorder) && recorder_has_pulse(&runtime.recorder)
               : sys_pid_alive(pid);
}

/* A recording is finished by who collects it, and the profile with it. 1: so it is left to others.
 */
static int runtime_is_recorded(const struct memtrace_header *header) {
    if (!recorder_is_on(&runtime.recorder)) {
        return 0;
    }
    if (runtime.recorder.is_midway && is_collected(header)) {
        return 0; /* who writes the recording does no more than that */
    }
    if (!is_collected(header)) {
        log_line("the recording has lost its collector; the next memtrace command finishes %s",
                 runtime.recorder.recording->path);
    }
    return 1;
}

static void write_all_out(struct memtrace_header *header) {
    struct survey survey;
    int written;
    if ((header->every_ns != 0 || header->churn_limit_bytes != 0) && !is_collected(header)) {
        runtime_print_top(); /* without a collector it is ours to print at the end */
    }
    written = finish_write_profile(&runtime.space) == 0;
    /* A run has one summary: that of its first process. */
    if (header->summary && (header->flags & MEMTRACE_FLAG_FORKED) == 0 &&
        survey_make(&survey, &runtime.space, &runtime.tree) == 0) {
        finish_print_summary(header, &survey, written);
        survey_free(&survey);
    }
    if (written &&
        sys_unlink(runtime.space.path) != 0) { /* we have fewer rights than at the start */
        STORE_RELEASE(&header->state, (uint32_t)MEMTRACE_STATE_WRITTEN);
    }
}

/* Whether who writes the recording sees the files that this process does, as far as can be told. */
static int shares_mounts(const struct memtrace_header *header) {
    char path[48], own[64], others[64];
    long size = sys_readlink("/proc/self/ns/mnt", own, sizeof own);
    text_print(path, sizeof path, "/proc/%u/ns/mnt", LOAD_RELAXED(&header->collector_pid));
    return size > 0 && sys_readlink(path, others, sizeof others) == size &&
           memcmp(own, others, (size_t)size) == 0;
}

static int has_all_files(const struct modules *modules, uint32_t first, uint32_t end) {
    for (uint32_t id = first; id < end; id++) {
        const struct memtrace_module *module = module_get(modules, id);
        if (module != NULL && module->path[0] == '/' && sys_access(module->path, R_OK) != 0) {
            return 0;
        }
    }
    return 1;
}

/* A recording takes what names functions out of the program's files at the end. Those that nobody
 * finds then, being gone or in a namespace that ends with us, are taken hold of while we are here:
 * within milliseconds of when they appear, for which a program that ends as soon waits (longer,
 * half a second at most, where the files of programs before it are still being read). */
static void await_module_files(const struct memtrace_header *header) {
    enum { STEPS = 500 };
    const struct memtrace_recording *recording = runtime.recorder.recording;
    uint32_t count = LOAD_ACQUIRE(&header->module_count);
    uint32_t seen;
    if (!recorder_is_on(&runtime.recorder) || recording->embed == MEMTRACE_EMBED_NONE) {
        return;
    }
    seen = LOAD_ACQUIRE(&recording->modules_seen);
    if (seen >= count || !is_collected(header) ||
        (shares_mounts(header) && has_all_files(&runtime.modules, seen, count))) {
        return;
    }
    for (int step = 0;
         step < STEPS && LOAD_ACQUIRE(&recording->modules_seen) < count && is_collected(header);
         step++) {
        sys_sleep_ns(1000 * 1000);
    }
}

/* What the profile says is whole now: the region says so, and is written where nobody else does. */
static void close_region(enum memtrace_state state) {
    struct memtrace_header *header = runtime.space.header;
    uint64_t end_ns = sys_clock_ns(CLOCK_MONOTONIC);
    await_module_files(header);
    header->end_monotonic_ns = end_ns;
    proc_note_resident_peak(header);
    proc_note_own_resident(header);
    poolroom_note();
    STORE_RELEASE(&header->state, (uint32_t)state);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* who lets go of us looks at it after that */
    if (!has_collector(header) && !runtime_is_recorded(header) && !attach_is_collected()) {
        write_all_out(header);
    }
}

/* The calling thread hands in what it holds back. 1: so does the process, a light child, and that
 * was all. */
static int runtime_hand_in(enum memtrace_state state) {
    thread_hand_in();
    return child_is_light() && child_hand_in(state);
}

void runtime_finish(enum memtrace_state state) {
    int saved = errno;
    uint32_t ready = RUNTIME_READY;
    int is_done;
    if (!runtime_is_ours() ||
        !__atomic_compare_exchange_n(&runtime.state, &ready, (uint32_t)RUNTIME_OFF, 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        return;
    }
    thread_pass_through(1);
    is_done = runtime_hand_in(state);
    STORE_RELAXED(&runtime.gate, (uintptr_t)GATE_NONE); /* nothing is counted from here on */
    if (!is_done) {
        thread_stop_all(); /* fast halves do not look at that gate */
        close_region(state);
    }
    thread_pass_through(0);
    errno = saved;
}

/* A successful exec never comes back: without a collector the file is written now, and the region
 * lives on without a name in case it fails. */
int runtime_before_exec(const char *path) {
    int saved = errno;
    if (!runtime_is_ours() || (path != NULL && sys_access(path, X_OK) != 0)) {
        return 0;
    }
    thread_pass_through(1);
    if (!runtime_hand_in(MEMTRACE_STATE_EXECED)) {
        close_region(MEMTRACE_STATE_EXECED);
    }
    thread_pass_through(0);
    errno = saved;
    return 1;
}

void runtime_after_failed_exec(void) {
    if (child_is_light()) {
        child_after_failed_exec();
    }
    runtime.space.header->end_monotonic_ns = 0;
    STORE_RELEASE(&runtime.space.header->state, (uint32_t)MEMTRACE_STATE_RUNNING);
}

/* --- what is periodic, where no collector is -------------------------------------------------- */

void runtime_print_top(void) {
    struct memtrace_header *header = runtime.space.header;
    struct survey survey;
    char buffer[256];
    long fd = header->log[0] != '\0' ? finish_open_log(header) : log_has_stderr() ? 2 : -1;
    if (fd < 0 || survey_make(&survey, &runtime.space, &runtime.tree) != 0) {
        return;
    }
    text_print(buffer, sizeof buffer, "memtrace: snapshot %u, churn %s, live %s\n",
               ++runtime.snapshots_done, text_size(header->churn_bytes).text,
               text_size(survey.total.alloc_bytes - survey.total.free_bytes).text);
    write_all((int)fd, buffer, text_length(buffer));
    survey_write_top((int)fd, &survey, &runtime.tree, &runtime.modules, header->top, NULL, NULL);
    survey_free(&survey);
    if (fd != 2) {
        sys_close(fd);
    }
}

static struct trylock periodic_lock;

void runtime_periodic(uint64_t now_ns) {
    struct memtrace_header *header = runtime.space.header;
    struct memtrace_timeline *timeline = runtime.region.timeline;
    uint64_t churn = LOAD_RELAXED(&header->churn_bytes);
    uint64_t asked;
    int by_churn;
    if (timeline == NULL) { /* a light child tells nothing of its own */
        return;
    }
    if (churn - LOAD_RELAXED(&runtime.churn_sampled) < timeline->churn_step_bytes &&
        (header->churn_limit_bytes == 0 ||
         churn - LOAD_RELAXED(&runtime.churn_printed) < header->churn_limit_bytes) &&
        LOAD_RELAXED(&header->snapshot_request) == runtime.snapshots_answered) {
        return;
    }
    if (!trylock_take(&periodic_lock)) {
        return;
    }
    if (churn - runtime.churn_sampled >= timeline->churn_step_bytes && !is_collected(header)) {
        struct memtrace_point point;
        region_totals(&runtime.region, &point);
        point.time_ns = now_ns;
        region_sample(&runtime.region, &point);
    }
    if (churn - runtime.churn_sampled >= timeline->churn_step_bytes) {
        runtime.churn_sampled = churn;
    }
    asked = LOAD_RELAXED(&header->snapshot_request);
    by_churn = header->churn_limit_bytes != 0 &&
               churn - runtime.churn_printed >= header->churn_limit_bytes;
    if ((by_churn || asked > runtime.snapshots_answered) && !is_collected(header)) {
        runtime.churn_printed = churn;
        runtime.snapshots_answered = asked;
        runtime_print_top();
    }
    trylock_release(&periodic_lock);
}
