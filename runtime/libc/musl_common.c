/* SPDX-License-Identifier: MIT */
/*
 * musl_common.c: what is musl's, shared or static. See musl_common.h.
 *
 * musl has no unwind tables: paths end at what calls main or a thread's first function
 * (outermost.c); a path that comes to another function of musl ends, too, and is counted as cut.
 */
#define _GNU_SOURCE
#include "runtime/libc/musl_common.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/libc/libc.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

int libc_describes_signals(void) {
    return 0;
}

int libc_spaces_blocks(const void *function) {
    (void)function;
    return 0;
}

int libc_ends_shell_options(void) {
    return 0;
}

int libc_waits_at_fclose(void) {
    return 0;
}

int libc_popen_error(int error) {
    return error;
}

/* Allocates nothing there. */
void libc_plan_stack(const pthread_attr_t *attributes, struct libc_stack *stack) {
    (void)attributes;
    *stack = (struct libc_stack){0};
}

int libc_own_stack(const struct libc_stack *planned, uintptr_t *low, uintptr_t *high) {
    pthread_attr_t attributes;
    void *from;
    size_t size;
    (void)planned;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0 ||
        pthread_attr_getstack(&attributes, &from, &size) != 0) {
        return -1;
    }
    *low = (uintptr_t)from;
    *high = (uintptr_t)from + size;
    return 1;
}

/* --- main ------------------------------------------------------------------------------------- */

typedef int main_function(int argc, char **argv, char **envp);

static main_function *program_main;

/* Leaves by a jump: no frame of ours stays on the stack. */
static int enter_main(int argc, char **argv, char **envp) {
    libc_note_outermost(__builtin_return_address(0));
    return program_main(argc, argv, envp);
}

typedef int start_function(main_function *function, int argc, char **argv, void (*init)(void),
                           void (*fini)(void), void (*loader_fini)(void));

PUBLIC int __libc_start_main(main_function *function, int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*loader_fini)(void));
PUBLIC int __libc_start_main(main_function *function, int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*loader_fini)(void)) {
    start_function *next = (start_function *)libc_next("__libc_start_main");
    program_main = function;
    return next(enter_main, argc, argv, init, fini, loader_fini);
}

/* --- the allocator ----------------------------------------------------------------------------
 *
 * Of these musl's own call malloc or aligned_alloc by their names, which are ours: each block would
 * be counted twice. */

static void *(*next_malloc)(size_t size);
static void *(*next_aligned_alloc)(size_t alignment, size_t size);

enum { PAGE = 4096 };

/* Clears what is not clear. A page that was never touched is not written to, and so takes no
 * memory: as musl does it where its malloc was replaced. */
static void clear(unsigned char *block, size_t size) {
    size_t head = -(uintptr_t)block % PAGE;
    if (size < 2 * PAGE) {
        memset(block, 0, size);
        return;
    }
    memset(block, 0, head);
    for (block += head, size -= head; size >= PAGE; block += PAGE, size -= PAGE) {
        const uint64_t *word = (const uint64_t *)(const void *)block;
        const uint64_t *end = word + PAGE / sizeof *word;
        while (word != end && *word == 0) {
            word++;
        }
        if (word != end) {
            memset(block, 0, PAGE);
        }
    }
    memset(block, 0, size);
}

static void *allocate_zeroed(size_t number, size_t size) {
    size_t total;
    void *block;
    if (__builtin_mul_overflow(number, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    block = next_malloc(total);
    if (block != NULL) {
        clear(block, total);
    }
    return block;
}

static void *allocate_aligned(size_t alignment, size_t size) {
    return next_aligned_alloc(alignment, size);
}

static int place_aligned(void **out, size_t alignment, size_t size) {
    int saved = errno;
    void *block;
    if (alignment < sizeof(void *)) {
        return EINVAL;
    }
    block = next_aligned_alloc(alignment, size);
    if (block == NULL) {
        int error = errno;
        errno = saved;
        return error;
    }
    *out = block;
    return 0;
}

static void *allocate_page(size_t size) {
    return next_aligned_alloc(sys_page_bytes(), size);
}

static void *allocate_pages(size_t size) {
    return next_aligned_alloc(sys_page_bytes(), sys_page_up(size));
}

void *musl_replaced(const char *name, void *(*find)(const char *name)) {
    static const struct {
        const char *name;
        void *function;
    } replaced[] = {{"calloc", (void *)allocate_zeroed},
                    {"memalign", (void *)allocate_aligned},
                    {"valloc", (void *)allocate_page},
                    {"pvalloc", (void *)allocate_pages},
                    {"posix_memalign", (void *)place_aligned}};
    if (next_malloc == NULL) {
        next_malloc = (void *(*)(size_t))find("malloc");
        next_aligned_alloc = (void *(*)(size_t, size_t))find("aligned_alloc");
    }
    for (size_t i = 0; i < sizeof replaced / sizeof replaced[0]; i++) {
        if (strcmp(name, replaced[i].name) == 0) {
            return replaced[i].function;
        }
    }
    return NULL;
}
