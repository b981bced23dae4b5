/* SPDX-License-Identifier: MIT */
/*
 * allocations.c: every allocation function of the C library, one case each, with edge values.
 * `allocations NAME` runs one case and prints what the heap should have seen; counts.py compares.
 * Sizes above 1000 are asked for once each, so that a context is found by its size.
 */
#include "subject.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

NOINLINE static void case_malloc(void) {
    void *kept = malloc(1001);
    void *gone = malloc(1003);
    memset(kept, 1, 1001);
    keep(gone);
    allocated(1001);
    allocated(1003);
    free(gone);
    freed(1003);
    keep(kept);
    for (size_t size = 0; size < 600; size += 7) {
        void *small = malloc(opaque(size));
        keep(small);
        check(small != NULL, "a small block");
        check(((uintptr_t)small & 15) == 0, "alignment of 16");
        allocated(size);
        free(small);
        freed(size);
    }
}

NOINLINE static void case_malloc_zero(void) {
    void *first = malloc(opaque(0));
    void *second = malloc(opaque(0));
    check(first != NULL && second != NULL && first != second, "two blocks of no bytes");
    allocated(0);
    allocated(0);
    free(first);
    freed(0);
    keep(second);
}

NOINLINE static void case_malloc_fails(void) {
    errno = 0;
    void *none = malloc(opaque(SIZE_MAX));
    check(none == NULL && errno == ENOMEM, "SIZE_MAX is refused");
    errno = 0;
    none = malloc(opaque(PTRDIFF_MAX));
    check(none == NULL && errno == ENOMEM, "PTRDIFF_MAX is refused");
}

NOINLINE static void case_malloc_huge(void) {
    size_t size = (size_t)5 << 30;
    void *huge = malloc(opaque(size)); /* over 4 GiB, never touched */
    check(huge != NULL, "5 GiB of address space");
    allocated(size);
    free(huge);
    freed(size);
    huge = malloc(opaque(size + 1));
    check(huge != NULL, "5 GiB again");
    allocated(size + 1);
    keep(huge);
}

NOINLINE static void case_calloc(void) {
    unsigned char *block = calloc(opaque(13), 101);
    int dirty = 0;
    for (size_t i = 0; i < 13 * 101; i++) {
        dirty |= block[i];
    }
    check(!dirty, "zeroes");
    allocated(13 * 101);
    void *zero = calloc(opaque(0), 7);
    keep(zero);
    allocated(0);
    free(zero);
    freed(0);
    errno = 0;
    void *none = calloc(opaque(SIZE_MAX / 2), 3);
    check(none == NULL && errno == ENOMEM, "an overflowing calloc is refused");
    none = calloc(opaque((size_t)1 << 32), (size_t)1 << 32);
    check(none == NULL, "an overflow to exactly zero is refused");
    keep(block);
}

NOINLINE static void case_realloc(void) {
    char *block = realloc(NULL, opaque(1001));
    allocated(1001);
    memset(block, 'a', 1001);
    for (size_t size = 2000; size < 40000; size += 1999) {
        size_t old = want.bytes - want.freed_bytes;
        block = realloc(block, opaque(size));
        check(block[1000] == 'a', "contents are kept");
        freed(old);
        allocated(size);
    }
    size_t old = want.bytes - want.freed_bytes;
    block = realloc(block, opaque(503)); /* shrinks */
    freed(old);
    allocated(503);
    block = realloc(block, opaque((size_t)3 << 20)); /* moves into a mapping */
    freed(503);
    allocated((size_t)3 << 20);
    block = realloc(block, opaque((size_t)9 << 20)); /* mremap */
    freed((size_t)3 << 20);
    allocated((size_t)9 << 20);
    check(block[500] == 'a', "contents are kept in mappings");
    free(block);
    freed((size_t)9 << 20);
}

NOINLINE static void case_realloc_zero(void) {
    char *block = malloc(1001);
    allocated(1001);
    keep(block);
    block = realloc(block, opaque(0)); /* glibc frees */
    check(block == NULL, "realloc to no bytes frees");
    freed(1001);
    block = realloc(NULL, opaque(0));
    check(block != NULL, "realloc of nothing to no bytes is malloc(0)");
    allocated(0);
    keep(block);
}

NOINLINE static void case_realloc_fails(void) {
    char *block = malloc(1001);
    allocated(1001);
    memset(block, 'z', 1001);
    errno = 0;
    char *none = realloc(block, opaque(SIZE_MAX - 100));
    check(none == NULL && errno == ENOMEM, "too large a realloc is refused");
    check(block[1000] == 'z', "and the old block is still there");
    none = realloc(block, opaque(PTRDIFF_MAX));
    check(none == NULL, "refused again");
    free(block);
    freed(1001);
}

NOINLINE static void case_reallocarray(void) {
    char *block = reallocarray(NULL, opaque(11), 103);
    allocated(11 * 103);
    keep(block);
    block = reallocarray(block, opaque(22), 103);
    freed(11 * 103);
    allocated(22 * 103);
    errno = 0;
    void *none = reallocarray(block, opaque(SIZE_MAX / 2), 16);
    check(none == NULL && errno == ENOMEM, "an overflowing reallocarray is refused");
    keep(block);
}

NOINLINE static void case_free(void) {
    free((void *)opaque(0));
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(opaque(24));
        keep(block);
        allocated(24);
        errno = 1234;
        free(block);
        check(errno == 1234, "free keeps errno");
        freed(24);
    }
    void *mapped = malloc(opaque((size_t)2 << 20));
    keep(mapped);
    allocated((size_t)2 << 20);
    errno = 77;
    free(mapped);
    check(errno == 77, "free of a mapping keeps errno");
    freed((size_t)2 << 20);
}

/* Old and new functions that this libc may lack: called only where they are there. */
extern void cfree(void *) __attribute__((weak));
extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

NOINLINE static void case_cfree(void) {
    void *block = malloc(1001);
    keep(block);
    allocated(1001);
    if (cfree != NULL) {
        cfree(block);
    } else {
        free(block);
    }
    freed(1001);
}

NOINLINE static void case_free_sized(void) {
    void *block = malloc(1001);
    void *other = aligned_alloc(64, 1088);
    keep(block);
    keep(other);
    allocated(1001);
    allocated(1088);
    if (free_sized != NULL) {
        free_sized(block, 1001);
    } else {
        free(block);
    }
    if (free_aligned_sized != NULL) {
        free_aligned_sized(other, 64, 1088);
    } else {
        free(other);
    }
    freed(1001);
    freed(1088);
}

NOINLINE static void case_posix_memalign(void) {
    void *block = NULL;
    check(posix_memalign(&block, 4096, 1001) == 0, "posix_memalign");
    check(((uintptr_t)block & 4095) == 0, "alignment of 4096");
    allocated(1001);
    void *wide = NULL;
    check(posix_memalign(&wide, 65536, 1003) == 0, "posix_memalign of 64 KiB");
    check(((uintptr_t)wide & 65535) == 0, "alignment of 64 KiB");
    allocated(1003);
    void *untouched = &want;
    errno = 5;
    check(posix_memalign(&untouched, opaque(3), 100) == EINVAL, "a bad alignment");
    check(posix_memalign(&untouched, opaque(24), 100) == EINVAL, "no power of two");
    check(posix_memalign(&untouched, opaque(4), 100) == EINVAL, "less than a pointer");
    check(untouched == (void *)&want && errno == 5, "nothing else changed");
    check(posix_memalign(&untouched, 64, opaque(SIZE_MAX - 200)) == ENOMEM, "too large");
    free(wide);
    freed(1003);
    keep(block);
}

NOINLINE static void case_aligned_alloc(void) {
    void *block = aligned_alloc(256, 1024);
    check(((uintptr_t)block & 255) == 0, "alignment of 256");
    allocated(1024);
    void *other = aligned_alloc(65536, 131072);
    check(((uintptr_t)other & 65535) == 0, "alignment of 64 KiB");
    allocated(131072);
    free(other);
    freed(131072);
    keep(block);
}

NOINLINE static void case_memalign(void) {
    void *block = memalign(128, 1001);
    check(((uintptr_t)block & 127) == 0, "alignment of 128");
    allocated(1001);
    void *other = memalign(65536, 1003);
    check(((uintptr_t)other & 65535) == 0, "alignment of 64 KiB");
    allocated(1003);
    free(block);
    freed(1001);
    keep(other);
}

NOINLINE static void case_valloc(void) {
    void *block = valloc(1001);
    check(((uintptr_t)block & 4095) == 0, "page alignment");
    allocated(1001);
    void *other = valloc(1003);
    allocated(1003);
    free(other);
    freed(1003);
    keep(block);
}

/* pvalloc rounds up to a page: what was asked for or what was given, either is fair. */
NOINLINE static void case_pvalloc(void) {
    void *block = pvalloc(8192);
    check(((uintptr_t)block & 4095) == 0, "page alignment");
    check(malloc_usable_size(block) >= 8192, "whole pages");
    allocated(8192);
    void *other = pvalloc(4096);
    allocated(4096);
    free(other);
    freed(4096);
    keep(block);
}

NOINLINE static void case_malloc_usable_size(void) {
    char line[80];
    check(malloc_usable_size(NULL) == 0, "of nothing");
    for (size_t size = 1; size < 5000; size = size * 3 + 1) {
        void *block = malloc(opaque(size));
        keep(block);
        allocated(size);
        snprintf(line, sizeof line, "usable %zu: %zu\n", size, malloc_usable_size(block));
        say(line);
        memset(block, 1, malloc_usable_size(block));
        free(block);
        freed(size);
    }
}

NOINLINE static void case_malloc_tuning(void) {
    check(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1, "mallopt");
    void *block = malloc(300001);
    keep(block);
    allocated(300001);
    struct mallinfo2 info = mallinfo2();
    check(info.uordblks >= 300001 && info.hblks == 0, "mallinfo2 sees the block");
    free(block);
    freed(300001);
    malloc_trim(0);
    info = mallinfo2();
    check(info.uordblks < 100000, "mallinfo2 sees it gone");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo old = mallinfo();
#pragma GCC diagnostic pop
    check(old.uordblks >= 0, "mallinfo");
}

NOINLINE static void case_strdup(void) {
    char text[1002];
    memset(text, 't', 1001);
    text[1001] = 0;
    char *copy = strdup(text);
    check(strcmp(copy, text) == 0, "a true copy");
    allocated(1002);
    char *part = strndup(text, opaque(1003 - 200));
    check(strlen(part) == 803, "a part");
    allocated(804);
    free(part);
    freed(804);
    keep(copy);
}

NOINLINE static void case_asprintf(void) {
    char *text = NULL;
    want.unknown = 1;
    check(asprintf(&text, "%0*d", 1500, 7) == 1500, "asprintf");
    keep(text);
    free(text);
    check(asprintf(&text, "%s", "short") == 5, "short asprintf");
    keep(text);
}

NOINLINE static void case_getline(void) {
    char *line = NULL;
    size_t room = 0;
    want.unknown = 1;
    FILE *file = fopen("/proc/self/status", "r");
    FILE *other = fopen("/etc/passwd", "r");
    check(other != NULL && getline(&line, &room, other) > 0, "getline");
    fclose(other);
    if (file != NULL) {
        fclose(file);
    }
    free(line);
}

/* The program's own counts of what another thread frees. */
static void *free_it(void *block) {
    free(block);
    return NULL;
}

NOINLINE static void case_other_thread(void) {
    want.unknown = 1; /* pthread_create allocates too */
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        void *block = malloc(1001);
        keep(block);
        if (pthread_create(&thread, NULL, free_it, block) == 0) {
            pthread_join(thread, NULL);
        }
    }
}

static const struct subject_case cases[] = {
    CASE(malloc),         CASE(malloc_zero),   CASE(malloc_fails),
    CASE(malloc_huge),    CASE(calloc),        CASE(realloc),
    CASE(realloc_zero),   CASE(realloc_fails), CASE(reallocarray),
    CASE(free),           CASE(cfree),         CASE(free_sized),
    CASE(posix_memalign), CASE(aligned_alloc), CASE(memalign),
    CASE(valloc),         CASE(pvalloc),       CASE(malloc_usable_size),
    CASE(malloc_tuning),  CASE(strdup),        CASE(asprintf),
    CASE(getline),        CASE(other_thread),
};

int main(int argc, char **argv) {
    const struct subject_case *found = FIND_CASE(cases, argc, argv);
    if (found == NULL) {
        return 98;
    }
    found->run();
    say_wanted();
    return 3;
}
