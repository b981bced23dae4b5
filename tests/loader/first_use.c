/* SPDX-License-Identifier: MIT */
/*
 * first_use.c LIBRARY [waits]: the constructor of what is opened (still.c) starts the first thread
 * there is and waits for it, with the loader's lock held. The thread calls, each for the first
 * time, what the runtime stands in front of; bare, none of it asks the loader for anything. What it
 * is in when nothing goes on is printed. With "waits" it reads a character first.
 */
#include "subject.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST_MS = 8000 };

static const char *in = "pthread_create"; /* NULL: all is done */

#define TRY(call)                                                                                  \
    do {                                                                                           \
        __atomic_store_n(&in, #call, __ATOMIC_RELEASE);                                            \
        (void)!(long)(call);                                                                       \
    } while (0)

static void ended_well(pid_t child) {
    int status = 0;
    check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child");
}

static void ends_by(void (*end)(int)) {
    pid_t child = fork();
    if (child == 0) {
        end(0);
    }
    ended_well(child);
}

static void becomes(int way) {
    char *const words[] = {(char *)"true", NULL};
    pid_t child = fork();
    if (child == 0) {
        int fd = way == 5 ? open("/bin/true", O_RDONLY) : -1;
        switch (way) {
        case 0:
            execv("/bin/true", words);
            break;
        case 1:
            execve("/bin/true", words, environ);
            break;
        case 2:
            execvp("true", words);
            break;
        case 3:
            execl("/bin/true", "true", (char *)NULL);
            break;
        case 4:
            execvpe("true", words, environ);
            break;
        default:
            fexecve(fd, words, environ);
            break;
        }
        _exit(1);
    }
    ended_well(child);
}

static void spawns(int by_path) {
    char *const words[] = {(char *)"true", NULL};
    pid_t child = 0;
    if (by_path) {
        check(posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) == 0, "posix_spawn");
    } else {
        check(posix_spawnp(&child, "true", NULL, NULL, words, environ) == 0, "posix_spawnp");
    }
    ended_well(child);
}

static void *one_block(void *argument) {
    keep(malloc(40));
    return argument;
}

static void starts_another(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, one_block, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
}

static void *first_uses(void *unused) {
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *block = NULL;
    void *pages = NULL;
    FILE *file = NULL;
    keep(&block);
    TRY(block = malloc(100));
    TRY(block = realloc(block, 200));
    TRY((free(block), 0));
    TRY((free(calloc(2, 50)), 0));
    TRY((free(memalign(64, 100)), 0));
    TRY((free(aligned_alloc(64, 128)), 0));
    TRY((free(valloc(100)), 0));
    TRY(posix_memalign(&block, 64, 100));
    TRY(malloc_usable_size(block));
    TRY(mallopt(M_PERTURB, 0));
    TRY(pages = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    TRY(pages = mremap(pages, page, 2 * page, MREMAP_MAYMOVE));
    TRY(munmap(pages, 2 * page));
    TRY(mlockall(0x100)); /* refused */
    TRY(munlockall());
    TRY(shmat(-1, NULL, 0));
    TRY(shmdt(NULL));
    TRY(sbrk(0));
    TRY(sigaction(SIGUSR1, &plain, NULL));
    TRY(signal(SIGUSR2, SIG_DFL));
    TRY(prctl(PR_GET_DUMPABLE));
    TRY(syscall(SYS_getppid));
    TRY(seteuid(geteuid()));
    TRY(setuid(getuid()));
    TRY(setreuid(getuid(), geteuid()));
    TRY(setresuid(getuid(), getuid(), getuid()));
    TRY(setns(-1, 0));
    TRY(unshare(0));
    TRY(mount("none", "/no/such/folder", "none", 0, NULL));
    TRY(chroot("/no/such/folder"));
    TRY((ends_by(_exit), 0));
    TRY((ends_by(_Exit), 0));
    for (int way = 0; way <= 5; way++) {
        TRY((becomes(way), 0));
    }
    TRY((spawns(1), 0));
    TRY((spawns(0), 0));
    TRY(system("true"));
    TRY(file = popen("true", "r"));
    TRY(pclose(file));
    TRY(file = popen("true", "r"));
    TRY(fclose(file));
    TRY((starts_another(), 0));
    __atomic_store_n(&in, NULL, __ATOMIC_RELEASE);
    return NULL;
}

__attribute__((visibility("default"))) void blocked_stand_still(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    pthread_t thread;
    const char *at = "";
    pthread_create(&thread, NULL, first_uses, NULL);
    for (int i = 0; i < LONGEST_MS && at != NULL; i++) {
        nanosleep(&moment, NULL);
        at = __atomic_load_n(&in, __ATOMIC_ACQUIRE);
    }
    if (at != NULL) {
        say("BLOCKED in ");
        say(at);
        say("\n");
        _exit(1);
    }
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    char character;
    check(argc == 2 || read(0, &character, 1) == 1, "read");
    check(dlopen(argv[1], RTLD_NOW) != NULL, "dlopen");
    say("done\n");
    return 3;
}
