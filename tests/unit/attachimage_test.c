/* SPDX-License-Identifier: MIT */
/* attachimage_test.c: collect/attach/attachimage: which program is meant, while it begins. */
#include "collect/attach/attachtarget.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 8 };

static void pause_ms(long ms) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* A process that begins as posix_spawn() and vfork() do: in its parent's memory. Returns that of
 * the parent; *child is its own. */
static pid_t spawn(volatile pid_t *child) {
    pid_t parent = fork();
    if (parent == 0) {
        if (vfork() == 0) {
            *child = getpid();
            pause_ms(10);
            execl("/bin/sleep", "sleep", "60", (char *)NULL);
            _exit(127);
        }
        waitpid(*child, NULL, 0);
        _exit(0);
    }
    for (int i = 0; i < 5000 && *child == 0; i++) {
        pause_ms(1);
    }
    return parent;
}

/* What would be written into it before would be its parent's. The exec comes at any moment of a
 * look. */
static void waits_for_the_exec_of_a_process_in_vfork(void **state) {
    volatile pid_t *child =
        mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(child != MAP_FAILED);
    if (syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0, 0) != 0) {
        skip(); /* the kernel does not tell whose memory it is */
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct attachimage image;
        pid_t parent;
        bool is_lent;
        bool is_current;
        *child = 0;
        parent = spawn(child);
        assert_int_not_equal(*child, 0);
        attachimage_open(*child, &image);
        is_lent = image.is_lent;
        is_current = attachimage_is_current(&image);
        attachimage_close(&image);
        kill(*child, SIGKILL);
        waitpid(parent, NULL, 0);
        assert_false(is_lent);
        assert_true(is_current);
    }
    munmap((void *)child, sizeof *child);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_for_the_exec_of_a_process_in_vfork)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
