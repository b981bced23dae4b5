/* SPDX-License-Identifier: MIT */
/* unnoticed.c: what a program can see of itself; all of it must be as without MemTrace. */
#include "subject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

static void use(void) {
    for (size_t i = 0; i < 20000; i++) {
        void *block = malloc(i % 3000);
        keep(block);
        if (i % 8 != 0) {
            free(block);
        }
    }
}

static void say_number(const char *what, long number) {
    char line[100];
    snprintf(line, sizeof line, "%s %ld\n", what, number);
    say(line);
}

/* Numbers that open() gives, before and after much allocating, and what children inherit. */
static void case_descriptors(void) {
    say_number("first", open("/dev/null", O_RDONLY));
    use();
    say_number("second", open("/dev/null", O_RDONLY));
    int ends[2];
    check(pipe(ends) == 0, "pipe");
    say_number("pipe", ends[0]);
    for (int i = 0; i < 256; i++) {
        if (fcntl(i, F_GETFD) != -1) {
            say_number("open", i);
        }
    }
    if (system("env -u LD_PRELOAD ls /proc/self/fd") != 0) {
        say("no ls\n");
    }
}

static void case_environment(void) {
    for (char **entry = environ; *entry != NULL; entry++) {
        say(*entry);
        say("\n");
    }
    use();
    if (system("env") != 0) {
        say("no env\n");
    }
}

static char *const given[] = {"GIVEN=yes", "PATH=/usr/bin:/bin", NULL};
static char *arguments[] = {"env", NULL, NULL};

static void start(int way) {
    static const char *const file = "/usr/bin/env";
    switch (way) {
    case 0:
        execv(file, arguments);
        break;
    case 1:
        execve(file, arguments, given);
        break;
    case 2:
        execvp("env", arguments);
        break;
    case 3:
        execvpe("env", arguments, given);
        break;
    case 4:
        fexecve(open(file, O_RDONLY), arguments, given);
        break;
    case 5:
        execl(file, "env", arguments[1], (char *)NULL);
        break;
    case 6:
        execlp("env", "env", arguments[1], (char *)NULL);
        break;
    case 7:
        execle(file, "env", arguments[1], (char *)NULL, given);
        break;
    case 8:
        check(posix_spawn(NULL, file, NULL, NULL, arguments, given) == 0, "posix_spawn");
        check(wait(NULL) > 0, "its end");
        break;
    default:
        check(posix_spawnp(NULL, "env", NULL, NULL, arguments, given) == 0, "posix_spawnp");
        check(wait(NULL) > 0, "its end");
    }
    _exit(0);
}

/* Every way to another program: it gets the arguments and the environment that it was given, which
 * is this program's own where none is given. */
static void case_programs(void) {
    static char *own[] = {"OWN=yes", "PATH=/usr/bin:/bin", NULL};
    for (int way = 0; way < 10; way++) {
        char word[20];
        snprintf(word, sizeof word, "WAY=%d", way);
        arguments[1] = word;
        if (fork() == 0) {
            environ = own;
            start(way);
        }
        check(wait(NULL) > 0, "the child's end");
    }
}

static int children_ended;
static void child_ended(int number) {
    (void)number;
    children_ended++;
}

static void case_children(void) {
    signal(SIGCHLD, child_ended);
    use();
    usleep(300000); /* a helper of ours would have come and gone */
    errno = 0;
    check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no children");
    check(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD, "none of any kind");
    check(children_ended == 0, "no SIGCHLD");
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    say_number("threads", count);
}

static void case_output(void) {
    use();
    say("the only line\n");
}

/* Signal dispositions and mask, floating point, locale, errno, alarm, working folder, umask. */
static void case_state(void) {
    errno = 42;
    use();
    check(errno == 42, "errno");
    for (int i = 1; i < 65; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL) {
            say_number(action.sa_handler == SIG_IGN ? "ignored" : "handled", i);
        }
    }
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 65; i++) {
        if (sigismember(&mask, i)) {
            say_number("blocked", i);
        }
    }
    say_number("rounding", fegetround());
    say_number("exceptions", fetestexcept(FE_ALL_EXCEPT));
    say(setlocale(LC_ALL, NULL));
    say_number("\numask", (long)umask(0));
    say_number("usable", (long)malloc_usable_size(malloc(100)));
    say_number("group is parent's", getpgrp() == getpgid(getppid()));
}

int main(int argc, char **argv) {
    static const struct subject_case cases[] = {CASE(descriptors), CASE(environment),
                                                CASE(programs),    CASE(children),
                                                CASE(output),      CASE(state)};
    const struct subject_case *found = FIND_CASE(cases, argc, argv);
    if (found == NULL) {
        return 98;
    }
    found->run();
    return 3;
}
