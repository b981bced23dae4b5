/* SPDX-License-Identifier: MIT */
/*
 * pooled.c MODE: a program with an allocator of its own, which knows nothing of MemTrace. It says
 * "ready" and does its work when it reads a line. The test attaches in between, naming functions.
 *
 * - rounds: each line: 1,000 blocks of 100, 101, ... bytes, all but the last 600 freed, 10 changed
 *   to 5,000 bytes; it says "done". "end" at the end of its input
 * - busy N: N threads do nothing but take blocks, fill, check and free them; it answers each line,
 *   and says "end" at the end of its input, if no call is missing
 * - spawns N: the same, and one thread more, which starts threads and programs all the time
 * - inside N: at a line a thread is interrupted behind instruction N of pool_take, for as long as
 *   the handler waits for another line; then as rounds
 * - waits: sleeps in pool_wait, whose fifth byte is the end of a system call, until a line comes,
 * then once more, and says "done" each time
 * - opens FILE: each line: FILE is opened, its plugin_alloc called 100 times, and it is closed
 * - keeps FILE: the same, but it is never closed
 * - filtered: as rounds, under a seccomp filter that refuses to make memory executable
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noclone, visibility("default")))
enum { ROOM = 1 << 14, BLOCKS = 64, MOST = 64, AFTER = 1000, KEPT = 600, CHANGED = 10 };

struct pool {
    struct pool *next;
    char *free[BLOCKS];
    uint32_t count;
    uint64_t calls;
};

/* ---- The allocator ---- */

static char arena[1 << 24] __attribute__((aligned(64)));
static size_t used;

/* Blocks of a thread are its own. */
OWN void *pool_take(struct pool *pool, size_t size) {
    size_t at;
    pool->calls++;
    if (pool->count != 0 && size <= 256) {
        return pool->free[--pool->count];
    }
    size = (size < 256 ? 256 : size) + 15;
    at = __atomic_fetch_add(&used, size & ~(size_t)15, __ATOMIC_RELAXED);
    if (at + size > sizeof arena) { /* from the start: who has had it knows no better */
        __atomic_store_n(&used, 0, __ATOMIC_RELAXED);
        at = 0;
    }
    return arena + at;
}

OWN void pool_give(struct pool *pool, void *block) {
    pool->calls++;
    if (pool->count < BLOCKS) {
        pool->free[pool->count++] = block;
    }
}

OWN void *pool_change(struct pool *pool, void *block, size_t size) {
    char *next = arena + __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);
    pool->calls++;
    memcpy(next, block, 16);
    return next;
}

/* ---- Work ---- */

static int next_line(void) {
    char line[16];
    return fgets(line, sizeof line, stdin) != NULL;
}

static void say(const char *text) {
    puts(text);
    fflush(stdout);
}

static void rounds(void) {
    static struct pool pool;
    static void *block[AFTER];
    say("ready");
    while (next_line()) {
        used = 0;
        pool.count = 0;
        for (int i = 0; i < AFTER; i++) {
            block[i] = pool_take(&pool, 100 + (size_t)i);
        }
        for (int i = 0; i < AFTER - KEPT; i++) {
            pool_give(&pool, block[i]);
        }
        for (int i = AFTER - CHANGED; i < AFTER; i++) {
            pool_change(&pool, block[i], 5000);
        }
        say("done");
    }
    say("end");
}

static volatile int stop;
static struct pool pools[MOST];

static void *work(void *own) {
    struct pool *pool = own;
    unsigned char *block[8];
    while (!stop) {
        for (int i = 0; i < 8; i++) {
            block[i] = pool_take(pool, 64);
            memset(block[i], (int)(pool - pools) + i, 64);
        }
        for (int i = 0; i < 8; i++) {
            for (int j = 0; j < 64; j++) {
                if (block[i][j] != (unsigned char)((pool - pools) + i)) {
                    say("a block is not what it was");
                    _exit(1);
                }
            }
            pool_give(pool, block[i]);
        }
    }
    return NULL;
}

static void *nothing(void *unused) {
    return unused;
}

static void *spawn(void *unused) {
    char *words[] = {(char *)"true", NULL};
    char *none[] = {NULL};
    while (!stop) {
        pthread_t thread;
        pid_t child;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
            pthread_join(thread, NULL);
        }
        if (posix_spawn(&child, "/bin/true", NULL, NULL, words, none) == 0) {
            waitpid(child, NULL, 0);
        }
    }
    return unused;
}

static void busy(int count, int spawns) {
    pthread_t thread[MOST + 1];
    uint64_t calls = 0;
    for (int i = 0; i < count; i++) {
        pthread_create(&thread[i], NULL, work, &pools[i]);
    }
    if (spawns) {
        pthread_create(&thread[count], NULL, spawn, NULL);
    }
    say("ready");
    while (next_line()) {
        say("done");
    }
    stop = 1;
    for (int i = 0; i < count + spawns; i++) {
        pthread_join(thread[i], NULL);
    }
    for (int i = 0; i < count; i++) {
        calls += pools[i].calls % 16; /* of whole rounds */
    }
    say(calls == 0 ? "end" : "a call is missing");
}

/* ---- Within its first bytes ---- */

#ifdef __x86_64__
/* read(), in 3 bytes and the 2 of the instruction that makes the call. */
long pool_wait(int fd, void *to, size_t size);
__asm__(".text\n"
        ".globl pool_wait\n"
        ".type pool_wait, @function\n"
        "pool_wait:\n"
        ".cfi_startproc\n"
        "    xorl %eax, %eax\n"
        "    nop\n"
        "    syscall\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size pool_wait, . - pool_wait\n");

static void waits(void) {
    char byte;
    say("ready");
    while (pool_wait(STDIN_FILENO, &byte, 1) == 1) {
        say("done");
    }
    say("end");
}

static volatile int steps_left;

/* With the processor's trap flag set each instruction ends here. */
static void on_step(int number, siginfo_t *info, void *context) {
    ucontext_t *at = context;
    char byte;
    uintptr_t in = (uintptr_t)at->uc_mcontext.gregs[REG_RIP] - (uintptr_t)pool_take;
    (void)number, (void)info;
    if (in == 0 || in > 64 || steps_left-- > 1) {
        return;
    }
    at->uc_mcontext.gregs[REG_EFL] &= ~0x100LL;
    if (write(STDOUT_FILENO, "inside\n", 7) != 7 || read(STDIN_FILENO, &byte, 1) != 1) {
        _exit(1);
    }
}

static void *be_inside(void *unused) {
    static struct pool pool;
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGTRAP, &action, NULL);
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    pool_take(&pool, 100);
    return unused;
}

static void inside(int steps) {
    pthread_t thread;
    char byte;
    say("ready");
    if (read(STDIN_FILENO, &byte, 1) == 1) {
        steps_left = steps;
        pthread_create(&thread, NULL, be_inside, NULL);
        pthread_join(thread, NULL);
        say("done");
    }
    setvbuf(stdin, NULL, _IONBF, 0);
    rounds();
}
#endif

/* mprotect(..., PROT_EXEC) is EACCES. */
static void refuse_code(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        say("no filter");
    }
}

static void opens(const char *file, int keeps) {
    say("ready");
    while (next_line()) {
        void *library = dlopen(file, RTLD_NOW);
        void *(*function)(size_t) =
            library != NULL ? (void *(*)(size_t))dlsym(library, "plugin_alloc") : NULL;
        for (int i = 0; function != NULL && i < 100; i++) {
            function(20);
        }
        if (library != NULL && !keeps) {
            dlclose(library);
        }
        say("done");
    }
    say("end");
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "rounds";
    const char *what = argc > 2 ? argv[2] : "1";
    if (strcmp(mode, "filtered") == 0) {
        refuse_code();
    }
    if (strcmp(mode, "rounds") == 0 || strcmp(mode, "filtered") == 0) {
        rounds();
    } else if (strcmp(mode, "opens") == 0 || strcmp(mode, "keeps") == 0) {
        opens(what, strcmp(mode, "keeps") == 0);
#ifdef __x86_64__
    } else if (strcmp(mode, "inside") == 0) {
        inside(atoi(what));
    } else if (strcmp(mode, "waits") == 0) {
        waits();
#endif
    } else {
        busy(atoi(what), strcmp(mode, "spawns") == 0);
    }
    return 3;
}
