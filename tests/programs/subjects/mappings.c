/* SPDX-License-Identifier: MIT */
/*
 * mappings.c: mmap and its relations. They are a class of their own: the heap's totals must not
 * move, and each mapping is found under a path that ends in its case.
 */
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

static void *map(size_t size) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

NOINLINE static void case_mmap(void) {
    char *kept = map(opaque(37 * 4096));
    char *gone = map(opaque(41 * 4096));
    check(kept != MAP_FAILED && gone != MAP_FAILED, "mappings");
    kept[0] = gone[0] = 1;
    check(munmap(gone, 41 * 4096) == 0, "munmap");
    errno = 0;
    check(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
              errno == EINVAL,
          "an empty mapping is refused");
    errno = 0;
    check(munmap((void *)1, 4096) == -1 && errno == EINVAL, "a crooked munmap is refused");
}

NOINLINE static void case_mmap_holes(void) {
    char *block = map(opaque(16 * 4096));
    memset(block, 1, 16 * 4096);
    check(munmap(block + 4 * 4096, 4096) == 0, "a hole");
    check(munmap(block, 4096) == 0, "the first page");
    check(munmap(block + 8 * 4096, 8 * 4096) == 0, "the end");
    char *fixed = mmap(block + 4 * 4096, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    check(fixed == block + 4 * 4096 && block[5 * 4096] == 1 && fixed[0] == 0, "a fixed page");
}

/* What is sealed by a filter of system calls, a machine's limit or the kernel stays mapped; here
 * the range reaches past the end of what a program may have. */
NOINLINE static void case_munmap_fails(void) {
    const size_t whole = (size_t)1 << 46;
    char *first = map(opaque(61 * 4096));
    char *second = map(opaque(67 * 4096));
    keep(first);
    keep(second);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        check(munmap(first, 4 * whole) == -1 && errno == EINVAL, "a range too large is refused");
    }
    check(munmap(first, 4096) == 0, "the first page goes");
    errno = 0;
    check(munmap(second + 4096, 4 * whole) == -1 && errno == EINVAL, "and again");
    check(munmap(second, 67 * 4096) == 0, "what was refused goes as a whole");
}

NOINLINE static void case_mmap64(void) {
    void *block = mmap64(NULL, opaque(43 * 4096), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(block != MAP_FAILED, "mmap64");
    keep(block);
}

NOINLINE static void case_mremap(void) {
    char *block = map(opaque(47 * 4096));
    block[5] = 9;
    char *moved = mremap(block, 47 * 4096, opaque(470 * 4096), MREMAP_MAYMOVE);
    check(moved != MAP_FAILED && moved[5] == 9, "mremap");
    void *target = map(100 * 4096);
    moved = mremap(moved, 470 * 4096, 53 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    check(moved == target && moved[5] == 9, "mremap to a fixed place");
}

NOINLINE static char *made_under(size_t size) {
    return map(size);
}

/* What lies under a fixed target goes, to the end of its last page. */
NOINLINE static void case_mremap_over(void) {
    char *block = map(opaque(4096));
    char *under = made_under(opaque(2 * 4096));
    check(mremap(block, 4096, 5000, MREMAP_MAYMOVE | MREMAP_FIXED, under) == under, "moved");
}

NOINLINE static void case_mremap_keeps(void) {
    char *block = map(opaque(71 * 4096));
    char *moved;
    block[5] = 9;
    moved = mremap(block, 71 * 4096, 71 * 4096, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);
    check(moved == MAP_FAILED || (moved[5] == 9 && block[5] == 0), "the old place is empty");
    if (moved == MAP_FAILED) { /* before Linux 5.7 */
        moved = map(71 * 4096);
    }
    moved = mremap(moved, 71 * 4096, 3 * 4096, 0); /* where it is: its end goes */
    check(moved != MAP_FAILED, "shrunk");
    check(mremap(moved, 3 * 4096, (size_t)1 << 50, MREMAP_MAYMOVE) == MAP_FAILED, "too large");
}

/* Attached twice, detached once. */
NOINLINE static void case_shared(void) {
    int id = shmget(IPC_PRIVATE, 73 * 4096 - 5, IPC_CREAT | 0600);
    char *kept = shmat(id, NULL, 0);
    char *gone = shmat(id, NULL, SHM_RDONLY);
    check(kept != MAP_FAILED && gone != MAP_FAILED, "attached");
    shmctl(id, IPC_RMID, NULL);
    kept[0] = 1;
    check(gone[0] == 1 && shmdt(gone) == 0, "detached");
    check(shmdt(kept + 1) == -1 && errno == EINVAL, "nothing is attached there");
}

NOINLINE static void case_brk(void) {
    char *start = sbrk(0);
    check(sbrk((intptr_t)opaque(59 * 4096)) == start, "sbrk");
    start[0] = 1;
    check((char *)sbrk(0) == start + 59 * 4096, "the new end");
    check(brk(start) == 0, "brk");
    check((char *)sbrk(0) == start, "the old end");
    free(malloc(10)); /* the heap lives with it */
    allocated(10);
    freed(10);
}

static const struct subject_case cases[] = {
    CASE(mmap),        CASE(mmap_holes),   CASE(munmap_fails), CASE(mmap64), CASE(mremap),
    CASE(mremap_over), CASE(mremap_keeps), CASE(shared),       CASE(brk),
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
