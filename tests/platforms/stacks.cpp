/* SPDX-License-Identifier: MIT */
/*
 * stacks.cpp SEED STACKS [own|fp|musl|patched|tagged]: random stacks, at many places of which a
 * block is allocated. Its call path as MemTrace has it (memtrace_lookup) is compared with the one
 * that the compiler's own unwinder finds at the same place (_Unwind_Backtrace), which needs no
 * debugger: so this runs in emulators, too.
 *
 * With "own" there are but usual frames of its own functions: no handlers, fibers or calls back.
 * With "musl" there are no fibers and calls back. With "fp" neither, and paths are compared up to
 * the first frame of a library, as for a C library that keeps no frame pointers. With "tagged"
 * malloc has to return tagged pointers (MTE). With "patched" the unwinder is asked past MemTrace,
 * which hides its guards from programs: those on the stacks are counted, and a line says "N guards
 * of the program, M of others", by the functions that return by them.
 *
 * The last lines are "pages of P bytes" and "STACKS stacks, N paths, M blocks, B bytes": all that
 * it allocated itself between the two calls of sum(). Status 1: a path was another, which is said.
 */
#include "memtrace/memtrace.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define KEPT __attribute__((noinline, noclone))

/* Not in a static program. */
#pragma weak dlopen
#pragma weak dlsym

namespace {

enum { MOST_FRAMES = 4096, ALTERNATE_BYTES = 256 << 10, FIBER_BYTES = 256 << 10, MOST_DEPTH = 60 };

/* --- what is random -----------------------------------------------------------------------------
 */

struct Random {
    uint64_t state;

    uint64_t next() {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return state >> 33;
    }

    uint64_t below(uint64_t limit) {
        return next() % limit;
    }
};

/* --- comparing ----------------------------------------------------------------------------------
 */

struct Path {
    uintptr_t frame[MOST_FRAMES];
    size_t count;
};

uint64_t paths, blocks, bytes;
const char *what = "";
bool ends_in_libc; /* paths need not be known beyond the program's own frames */

extern "C" const char __executable_start[], etext[];

bool is_own(uintptr_t pc) {
    const auto start = reinterpret_cast<uintptr_t>(__executable_start);
    return pc - start < reinterpret_cast<uintptr_t>(etext) - start;
}

/* With "patched". A guard seems to be a function of the runtime. */
decltype(_Unwind_Backtrace) *unwind = _Unwind_Backtrace;
void *runtime_base;
uint64_t own_guards, other_guards;

bool is_guard(uintptr_t pc) {
    Dl_info info;
    return runtime_base != nullptr && !is_own(pc) &&
           dladdr(reinterpret_cast<void *>(pc), &info) != 0 && info.dli_fbase == runtime_base;
}

_Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument) {
    auto *path = static_cast<Path *>(argument);
    uintptr_t pc = _Unwind_GetIP(context);
    if (pc == 0 || path->count == MOST_FRAMES) {
        return _URC_END_OF_STACK;
    }
    if (is_guard(pc)) {
        (is_own(path->frame[path->count - 1]) ? own_guards : other_guards)++;
    } else {
        path->frame[path->count++] = pc;
    }
    return _URC_NO_REASON;
}

void write_path(const char *name, const uintptr_t *frame, size_t count) {
    fprintf(stderr, "%s:", name);
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, " %#lx", static_cast<unsigned long>(frame[i]));
    }
    fputc('\n', stderr);
}

/* What the unwinder tells more than the address of an instruction that was interrupted: for MIPS so
 * much that one less is still an address in it (libgcc/config/mips/linux-unwind.h). */
#ifdef __mips__
constexpr uintptr_t MORE = 2;
#else
constexpr uintptr_t MORE = 0;
#endif

/* Up to the first of a library: handlers return to code of no object. */
size_t own_frames(const Path &path) {
    Dl_info info;
    size_t own = 0;
    while (own < path.count && (is_own(path.frame[own]) ||
                                dladdr(reinterpret_cast<void *>(path.frame[own]), &info) == 0)) {
        own++;
    }
    return own;
}

/* Whether MemTrace may have one frame more. ARM's unwinder does not show the outermost, of which
 * its tables say that there is no way on: the program's first code, that of all threads or of
 * fibers. */
bool is_outermost(uintptr_t pc) {
#ifdef __ARM_EABI_UNWINDER__
    static uintptr_t known[3];
    for (auto &each : known) {
        each = each == 0 ? pc : each;
        if (each == pc) {
            return true;
        }
    }
#endif
    static_cast<void>(pc);
    return false;
}

/* Both begin in the calling function, at two places. */
void compare(const memtrace_block &block, const Path &path) {
    const auto *frame = reinterpret_cast<const uintptr_t *>(block.frames);
    size_t wanted = ends_in_libc ? own_frames(path) + 1 : path.count;
    size_t count = wanted < 64 ? wanted : 64;
    bool same = ends_in_libc ? block.frame_count >= wanted : block.frame_count == wanted;
    if (block.frame_count == wanted + 1 && (wanted >= 64 || is_outermost(frame[wanted]))) {
        same = true;
    }
    for (size_t i = 1; same && i < count; i++) {
        same = frame[i] == path.frame[i] ||
               (MORE != 0 && path.frame[i] % 4 == MORE && frame[i] == path.frame[i] - MORE);
    }
    if (!same || frame[0] - path.frame[0] + 4096 > 8192) {
        fprintf(stderr, "another path (%s): %u frames, not %zu\n", what, block.frame_count,
                path.count);
        write_path("MemTrace", frame, block.frame_count < 64 ? block.frame_count : 64);
        write_path("unwinder", path.frame, path.count);
        _exit(1);
    }
    paths++;
}

KEPT void check(size_t size) {
    memtrace_block block;
    Path path;
    void *pointer = calloc(1, size);
    blocks++;
    bytes += size;
    path.count = 0;
    if (memtrace_lookup(pointer, &block) == 0) {
        fprintf(stderr, "the block is not known (%s)\n", what);
        _exit(1);
    }
    unwind(add_frame, &path);
    compare(block, path);
    free(pointer);
}

/* --- frames of many kinds -----------------------------------------------------------------------
 */

struct Walk {
    Random random;
    int left;    /* frames that are still to be entered */
    int signals; /* handlers that are running */
    bool on_alternate;
    bool on_fiber;
    bool leaves; /* an exception, or a jump, takes it out again */
    sigjmp_buf *jump;
};

thread_local Walk *walk; /* for handlers, and what starts on another stack */

void go_on(Walk *at);

using Frame = void(Walk *);

KEPT void small(Walk *at) {
    go_on(at);
    check(16 + at->random.below(100));
}

KEPT void large(Walk *at) {
    volatile char room[3000];
    room[at->random.below(sizeof room)] = 1;
    go_on(at);
    room[0] = 2;
}

KEPT void huge(Walk *at) {
    volatile char room[70000];
    room[at->random.below(sizeof room)] = 1;
    go_on(at);
    room[0] = 2;
}

KEPT void variable(Walk *at) {
    auto *room = static_cast<volatile char *>(alloca(16 + at->random.below(2000)));
    room[0] = 1;
    go_on(at);
    check(room[0] + 40);
}

/* Whose variables are in all the registers that a function has to save. */
KEPT void crowded(Walk *at) {
    uint64_t value[8];
    double other[6];
    for (auto &each : value) {
        each = at->random.next();
    }
    for (auto &each : other) {
        each = static_cast<double>(at->random.next());
    }
    go_on(at);
    for (size_t i = 0; i < 8; i++) {
        value[0] += value[i] << i;
        other[i % 6] += other[(i + 1) % 6] * 3;
    }
    volatile double kept = other[0] + static_cast<double>(value[0]);
    static_cast<void>(kept);
}

/* Ends in a jump, so that it is not on the stack. */
KEPT void jumping(Walk *at) {
    at->random.next();
    go_on(at);
}

int compare_and_go_on(const void *key, const void *) {
    go_on(*static_cast<Walk *const *>(key));
    return 0;
}

/* Through the C library. */
KEPT void called_back(Walk *at) {
    int item[3] = {1, 2, 3};
    bsearch(&at, item, 3, sizeof item[0], compare_and_go_on);
    check(24);
}

KEPT void catching(Walk *at) {
    bool before = at->leaves;
    at->leaves = at->random.below(2) == 0;
    try {
        go_on(at);
        if (at->leaves) {
            throw 7;
        }
    } catch (int) {
        check(48);
    }
    at->leaves = before;
    check(56);
}

struct Cleaning {
    ~Cleaning() {
        check(72);
    }
};

KEPT void cleaning(Walk *at) {
    Cleaning local;
    go_on(at);
}

KEPT void throwing(Walk *at) {
    go_on(at);
    if (at->leaves && at->jump == nullptr) {
        throw 9;
    }
}

KEPT void jumped_to(Walk *at) {
    sigjmp_buf here;
    sigjmp_buf *before = at->jump;
    Walk kept = *at;
    if (sigsetjmp(here, 1) == 0) {
        at->jump = &here;
        go_on(at);
    }
    at->jump = before;
    at->signals = kept.signals;
    at->on_alternate = kept.on_alternate;
    at->on_fiber = kept.on_fiber;
    at->leaves = kept.leaves;
    check(88);
}

/* --- handlers -----------------------------------------------------------------------------------
 */

void handle(int) {
    Walk *at = walk;
    if (at == nullptr) {
        return;
    }
    at->signals++;
    check(120);
    go_on(at);
    check(136);
    at->signals--;
}

/* Some kernels lay another frame out for it. */
void handle_with_more(int signal, siginfo_t *, void *) {
    handle(signal);
}

bool may_be_interrupted(const Walk *at) {
    return at->signals < 3 && !at->leaves && at->jump == nullptr && !at->on_fiber;
}

KEPT void raising(Walk *at) {
    if (may_be_interrupted(at)) {
        raise(SIGUSR1);
    } else {
        go_on(at);
    }
    check(152);
}

KEPT void raising_elsewhere(Walk *at) {
    if (may_be_interrupted(at) && !at->on_alternate) {
        at->on_alternate = true;
        raise(SIGUSR2);
        at->on_alternate = false;
    } else {
        go_on(at);
    }
    check(168);
}

/* A function that calls nothing, and has perhaps saved nothing, when a handler comes. */
volatile sig_atomic_t interrupted;
volatile uint64_t turns;

KEPT uint64_t spin(uint64_t value) {
    while (interrupted == 0) {
        value = value * 3 + 1;
        turns = value;
    }
    return value;
}

struct Sender {
    pthread_t to;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    bool is_asked, ends;
} sender;

void *send_signals(void *) {
    pthread_mutex_lock(&sender.lock);
    for (;;) {
        while (!sender.is_asked && !sender.ends) {
            pthread_cond_wait(&sender.wakes, &sender.lock);
        }
        if (sender.ends) {
            pthread_mutex_unlock(&sender.lock);
            return nullptr;
        }
        sender.is_asked = false;
        uint64_t seen = turns;
        while (turns == seen) { /* until it is there */
            usleep(50);
        }
        pthread_kill(sender.to, SIGURG);
    }
}

void handle_and_let_go(int signal) {
    handle(signal);
    interrupted = 1;
}

KEPT void interrupted_anywhere(Walk *at) {
    if (may_be_interrupted(at) && !at->on_alternate && at->random.below(4) == 0) {
        interrupted = 0;
        pthread_mutex_lock(&sender.lock);
        sender.is_asked = true;
        pthread_cond_signal(&sender.wakes);
        pthread_mutex_unlock(&sender.lock);
        spin(at->random.next());
    } else {
        go_on(at);
    }
    check(184);
}

/* --- another stack ------------------------------------------------------------------------------
 */

ucontext_t here, fiber;
alignas(64) char fiber_stack[FIBER_BYTES];

void run_fiber() {
    go_on(walk);
    check(200);
}

KEPT void on_a_fiber(Walk *at) {
    if (!at->on_fiber && !at->leaves && at->jump == nullptr && at->signals == 0) {
        at->on_fiber = true;
        getcontext(&fiber);
        fiber.uc_stack.ss_sp = fiber_stack;
        fiber.uc_stack.ss_size = sizeof fiber_stack;
        fiber.uc_link = &here;
        makecontext(&fiber, run_fiber, 0);
        swapcontext(&here, &fiber);
        at->on_fiber = false;
    } else {
        go_on(at);
    }
    check(216);
}

/* --- who is called
 * --------------------------------------------------------------------------------
 */

void *next_calloc; /* as the loader says which is next behind the program */

/* Ends in a jump, so that the loader may find a guard where it looks for who asks. */
KEPT void *look_up(Walk *at) {
    go_on(at);
    return dlsym(RTLD_NEXT, "calloc");
}

KEPT void asking(Walk *at) {
    if (look_up(at) != next_calloc) {
        fputs("dlsym() takes another for who calls it\n", stderr);
        _exit(1);
    }
    check(264);
}

/* --- a stack ------------------------------------------------------------------------------------
 */

const struct {
    Frame *function;
    const char *name;
} frames[] = {
    {small, "small"},
    {small, "small"},
    {small, "small"},
    {large, "large"},
    {huge, "huge"},
    {variable, "variable"},
    {crowded, "crowded"},
    {jumping, "jumping"},
    {catching, "catching"},
    {cleaning, "cleaning"},
    {throwing, "throwing"},
    {jumped_to, "jumped to"},
    {raising, "raising"},
    {raising_elsewhere, "raising elsewhere"},
    {interrupted_anywhere, "interrupted anywhere"},
    {called_back, "called back"},
    {on_a_fiber, "on a fiber"},
    {asking, "asking"},
};

/* The first of them are the program's own functions alone, on the thread's own stack. The last is
 * for "patched", those before it for C libraries that have unwind tables, through which exceptions
 * pass, and fibers. */
enum {
    OWN_KINDS = 11,
    PATCHED_KINDS = sizeof frames / sizeof frames[0],
    KINDS = PATCHED_KINDS - 1,
    MUSL_KINDS = KINDS - 2
};
size_t kinds = KINDS;

KEPT void go_on(Walk *at) {
    if (at->left == 0) {
        check(8 + at->random.below(500));
        if (at->jump != nullptr && at->random.below(2) == 0) {
            siglongjmp(*at->jump, 1);
        }
        return;
    }
    at->left--;
    size_t chosen = at->random.below(kinds);
    bool is_deep_elsewhere = at->on_fiber || at->on_alternate;
    if (is_deep_elsewhere && frames[chosen].function == huge) {
        chosen = 0;
    }
    what = frames[chosen].name;
    frames[chosen].function(at);
    if (at->random.below(3) == 0) {
        check(232);
    }
}

KEPT void one_stack(uint64_t seed) {
    Walk at = {};
    at.random.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    at.left = static_cast<int>(at.random.below(at.random.below(4) == 0 ? MOST_DEPTH : 12));
    walk = &at;
    try {
        go_on(&at);
    } catch (int) {
        check(248);
    }
    walk = nullptr;
}

void set_handler(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    if (sigaction(signal, &action, nullptr) != 0) {
        _exit(2);
    }
}

void begin() {
    static char alternate[ALTERNATE_BYTES];
    stack_t stack = {};
    stack.ss_sp = alternate;
    stack.ss_size = sizeof alternate;
    if (sigaltstack(&stack, nullptr) != 0) {
        _exit(2);
    }
    set_handler(SIGUSR1, handle, 0);
    set_handler(SIGUSR2, reinterpret_cast<void (*)(int)>(handle_with_more),
                SA_ONSTACK | SA_SIGINFO);
    set_handler(SIGURG, handle_and_let_go, 0);
    sender.to = pthread_self();
    sender.is_asked = sender.ends = false;
    pthread_mutex_init(&sender.lock, nullptr);
    pthread_cond_init(&sender.wakes, nullptr);
}

struct Stacks {
    uint64_t seed, count;
};

void *run(void *argument) {
    const auto *stacks = static_cast<const Stacks *>(argument);
    pthread_t sending;
    begin();
    if (pthread_create(&sending, nullptr, send_signals, nullptr) != 0) {
        _exit(2);
    }
    for (uint64_t i = 0; i < stacks->count; i++) {
        one_stack(stacks->seed + i);
        if (i % 3 == 1) {
            one_stack(stacks->seed + i - 1); /* a stack that was there before */
        }
    }
    pthread_mutex_lock(&sender.lock);
    sender.ends = true;
    pthread_cond_signal(&sender.wakes);
    pthread_mutex_unlock(&sender.lock);
    pthread_join(sending, nullptr);
    return nullptr;
}

/* The unwinder itself, and where its look shows guards. */
bool look_past_memtrace() {
    Dl_info info;
    void *library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library != nullptr ? dlsym(library, "_Unwind_Backtrace") : nullptr;
    if (found == nullptr || dladdr(reinterpret_cast<void *>(memtrace_lookup), &info) == 0) {
        return false;
    }
    unwind = reinterpret_cast<decltype(unwind)>(found);
    runtime_base = info.dli_fbase;
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    kinds = PATCHED_KINDS;
    return true;
}

/* With "tagged": whether malloc returns pointers with a tag in their top byte. */
bool has_tags() {
    bool has = false;
    for (int i = 0; i < 20; i++) {
        void *block = malloc(100);
        has |= reinterpret_cast<uintptr_t>(block) >> 56 != 0;
        free(block);
    }
    return has;
}

} // namespace

/* On the first thread, and on another. */
int main(int count, char **arguments) {
    Stacks stacks = {count > 1 ? strtoull(arguments[1], nullptr, 10) : 1,
                     count > 2 ? strtoull(arguments[2], nullptr, 10) : 100};
    pthread_t other;
    const char *which = count > 3 ? arguments[3] : "";
    ends_in_libc = strcmp(which, "fp") == 0;
    kinds = strcmp(which, "own") == 0                    ? OWN_KINDS
            : strcmp(which, "musl") == 0 || ends_in_libc ? MUSL_KINDS
                                                         : KINDS;
    if (memtrace_lookup == nullptr) {
        fputs("MemTrace is not there\n", stderr);
        return 2;
    }
    if (strcmp(which, "tagged") == 0 && !has_tags()) {
        fputs("malloc returns no tagged pointers here\n", stderr);
        return 2;
    }
    if (strcmp(which, "patched") == 0 && !look_past_memtrace()) {
        fputs("there is no shared libgcc\n", stderr);
        return 2;
    }
    run(&stacks);
    stacks.seed += stacks.count;
    if (pthread_create(&other, nullptr, run, &stacks) != 0) {
        return 2;
    }
    pthread_join(other, nullptr);
    if (runtime_base != nullptr) {
        printf("%lu guards of the program, %lu of others\n", static_cast<unsigned long>(own_guards),
               static_cast<unsigned long>(other_guards));
    }
    printf("pages of %ld bytes\n%lu stacks, %lu paths, %lu blocks, %lu bytes\n",
           sysconf(_SC_PAGESIZE), static_cast<unsigned long>(2 * stacks.count),
           static_cast<unsigned long>(paths), static_cast<unsigned long>(blocks),
           static_cast<unsigned long>(bytes));
    return 0;
}
