/* SPDX-License-Identifier: MIT */
/*
 * strict.c: a program that may only read, write and end from some moment on (SECCOMP_MODE_STRICT),
 * when the processor's time stamps are gone, too. It allocates for many timer interrupts, sets its
 * allocator and ends with 3; 77: there is no such mode.
 */
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 10000000 };

int main(void) {
    void *volatile block = malloc(100);
    int result = mallopt(M_TRIM_THRESHOLD, 1 << 20);
    free(block);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
        return 77;
    }
    for (long i = 0; i < ROUNDS; i++) {
        block = malloc(100);
        free(block);
    }
    result += mallopt(M_TRIM_THRESHOLD, 1 << 21);
    if (write(STDOUT_FILENO, "all done\n", 9) != 9 || result != 2) {
        syscall(SYS_exit, 1);
    }
    syscall(SYS_exit, 3);
    return 1;
}
