/* SPDX-License-Identifier: MIT */
/*
 * real_stack.c: the true stack of every allocation, by libgcc's unwinder. Preloaded instead of
 * MemTrace into the very same binary, so that it cannot disturb what it is compared with.
 *
 * REAL_STACK_OUT names the file; REAL_STACK_LOW and REAL_STACK_HIGH bound the sizes noted. It is a
 * stream of 64-bit words, read by oracle.py:
 *     frames, size, (module << 48 | offset) * frames     an allocation, innermost frame first
 *     0, module, bytes, path padded with zeros           a module, before its first use
 * Offsets are those of the call, as in reports: return address minus one, relative to the load
 * bias; or the address itself where nothing was called.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

enum { MOST_FRAMES = 8000, MOST_MODULES = 256, MODULE_SHIFT = 48 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int started, out = -1;
static size_t lowest, highest = SIZE_MAX;
static struct link_map *own;
static _Thread_local int inside __attribute__((tls_model("initial-exec")));

static struct {
    uintptr_t bias;
    char path[512];
} modules[MOST_MODULES];
static size_t module_count;
static atomic_flag modules_busy = ATOMIC_FLAG_INIT;

static size_t size_setting(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

/* At the first allocation, which may come before any constructor of ours. */
static void start(void) {
    struct dl_find_object found;
    const char *path = getenv("REAL_STACK_OUT");
    int low;
    started = 1;
    if (path == NULL || _dl_find_object((void *)(uintptr_t)start, &found) != 0) {
        return;
    }
    own = found.dlfo_link_map;
    lowest = size_setting("REAL_STACK_LOW", 0);
    highest = size_setting("REAL_STACK_HIGH", SIZE_MAX);
    low = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    out = fcntl(low, F_DUPFD_CLOEXEC, 500); /* away from the numbers the program sees */
    close(low);
}

static void put(const void *bytes, size_t size) {
    if (write(out, bytes, size) != (ssize_t)size) {
        _exit(99);
    }
}

static void put_module(uint64_t id, const char *path) {
    struct {
        uint64_t head[3];
        char path[sizeof modules[0].path];
    } record = {{0, id, (strlen(path) + 7) / 8 * 8}, ""};
    memcpy(record.path, path, strlen(path));
    put(&record, sizeof record.head + record.head[2]);
}

static uint64_t module_number(const struct link_map *map) {
    size_t i = 0;
    while (atomic_flag_test_and_set(&modules_busy)) {
    }
    while (i < module_count &&
           (modules[i].bias != map->l_addr || strcmp(modules[i].path, map->l_name) != 0)) {
        i++;
    }
    if (i == module_count && i < MOST_MODULES) {
        char self[sizeof modules[0].path] = "";
        const char *path = map->l_name;
        modules[i].bias = map->l_addr;
        strncpy(modules[i].path, path, sizeof modules[0].path - 1);
        if (path[0] == '\0' && readlink("/proc/self/exe", self, sizeof self - 1) > 0) {
            path = self;
        }
        put_module(i, path);
        module_count++;
    }
    atomic_flag_clear(&modules_busy);
    return i;
}

struct stack {
    uint64_t frames;
    uint64_t size;
    uint64_t frame[MOST_FRAMES];
};

/* Whether this "return address" is where a function starts: nobody called it (a signal handler's
 * __restore_rt, a fiber's first function). _Unwind_FindEnclosingFunction looks at its argument - 1;
 * what __restore_rt's table entry covers starts a byte before it. */
static int is_entry(uintptr_t pc) {
    uintptr_t called = (uintptr_t)_Unwind_FindEnclosingFunction((void *)pc);
    return called == pc - 1 ||
           (called == 0 && (uintptr_t)_Unwind_FindEnclosingFunction((void *)(pc + 1)) == pc);
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument) {
    struct stack *stack = argument;
    struct dl_find_object found;
    int exact = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
    pc -= exact || is_entry(pc) ? 0 : 1;
    if (pc + 1 <= 1) {
        return _URC_NORMAL_STOP;
    }
    if (_dl_find_object((void *)pc, &found) != 0) {
        stack->frame[stack->frames++] = pc;
    } else if (found.dlfo_link_map != own) {
        stack->frame[stack->frames++] = (module_number(found.dlfo_link_map) << MODULE_SHIFT) |
                                        (pc - found.dlfo_link_map->l_addr);
    }
    return stack->frames < MOST_FRAMES ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

static void note(size_t size) {
    int error = errno;
    if (!started) {
        start();
    }
    if (out >= 0 && inside == 0 && size >= lowest && size <= highest) {
        static _Thread_local struct stack stack; /* the program's stacks may be small */
        inside++;
        stack.frames = 0;
        stack.size = size;
        _Unwind_Backtrace(add_frame, &stack);
        put(&stack, 16 + stack.frames * sizeof stack.frame[0]);
        inside--;
    }
    errno = error;
}

/* --- what allocates -------------------------------------------------------------------------- */

void *malloc(size_t size) {
    note(size);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note(count * size);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    note(size);
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    note(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    note(size);
    *block = __libc_memalign(alignment, size);
    return *block != NULL ? 0 : ENOMEM;
}

/* The C++ operators by their mangled names: new, new[], and each nothrow and aligned. */
#define OPERATOR(name, alignment)                                                                  \
    void *name(size_t size, size_t second);                                                        \
    void *name(size_t size, size_t second) {                                                       \
        (void)second; /* an alignment, a reference to std::nothrow, or nothing */                  \
        note(size);                                                                                \
        return __libc_memalign(alignment, size);                                                   \
    }
OPERATOR(_Znwm, 16)
OPERATOR(_Znam, 16)
OPERATOR(_ZnwmRKSt9nothrow_t, 16)
OPERATOR(_ZnamRKSt9nothrow_t, 16)
OPERATOR(_ZnwmSt11align_val_t, second)
OPERATOR(_ZnamSt11align_val_t, second)
