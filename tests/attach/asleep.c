/* SPDX-License-Identifier: MIT */
/*
 * asleep.c CALL: says "ready", sleeps once in this system call, says what it returned, and ends
 * when a byte comes. The sleep is over after a while (nanosleep, poll, select, epoll, sigtimed,
 * semtimed; it says then whether that was too early), or when a byte comes, by a child's doing. A
 * handler of a signal has run before, where the sleeping function's stack is by now, and its frame
 * is there yet. "handler": it sleeps in a handler, which has interrupted a wait. "heap": it sleeps
 * where a function of the C library's heap has called it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1500, PIECE = 4096, ROOM = 128 << 10 };

static void wait_for_byte(void) {
    char byte;
    if (read(STDIN_FILENO, &byte, 1) != 1) {
        _exit(4);
    }
}

static void *sleep_on(void *unused) {
    wait_for_byte();
    return unused;
}

/* What parent and child meet by. */
struct meeting {
    char folder[32], path[64];
    int ends[2], lock, queue, semaphore;
};

struct message {
    long type;
    char text[8];
};

static struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
static char bytes[PIECE];

static int meet(struct meeting *meeting, const char *name) {
    snprintf(meeting->folder, sizeof meeting->folder, "/tmp/asleep.XXXXXX");
    if (mkdtemp(meeting->folder) == NULL) {
        return -1;
    }
    snprintf(meeting->path, sizeof meeting->path, "%s/file", meeting->folder);
    if (strcmp(name, "fifo") == 0) {
        mkfifo(meeting->path, 0600);
    } else if (strcmp(name, "flock") == 0 || strcmp(name, "lock") == 0) {
        meeting->lock = open(meeting->path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    } else if (strcmp(name, "msgrcv") == 0) {
        meeting->queue = msgget(IPC_PRIVATE, 0600);
    } else if (strncmp(name, "sem", 3) == 0) {
        meeting->semaphore = semget(IPC_PRIVATE, 1, 0600);
    }
    if (strcmp(name, "write") == 0) {
        return pipe(meeting->ends);
    }
    return socketpair(AF_UNIX, SOCK_STREAM, 0, meeting->ends);
}

static void part(const struct meeting *meeting) {
    int reason = errno;
    unlink(meeting->path);
    rmdir(meeting->folder);
    msgctl(meeting->queue, IPC_RMID, NULL);
    semctl(meeting->semaphore, 0, IPC_RMID);
    errno = reason;
}

/* The child holds the lock before its parent asks. */
static void hold(const struct meeting *meeting, const char *name) {
    if (strcmp(name, "flock") == 0) {
        flock(open(meeting->path, O_RDWR | O_CLOEXEC), LOCK_EX);
    } else if (strcmp(name, "lock") == 0) {
        fcntl(meeting->lock, F_SETLK, &whole);
    }
}

static void drain(int fd) {
    static char room[1 << 20];
    if (read(fd, room, sizeof room) < 0) {
        _exit(1);
    }
}

/* What its parent sleeps for. */
static int wake(const struct meeting *meeting, const char *name) {
    struct message message = {1, "x"};
    struct sembuf up = {0, 1, 0};
    wait_for_byte();
    if (strncmp(name, "sig", 3) == 0) {
        return kill(getppid(), SIGUSR2);
    }
    if (strcmp(name, "msgrcv") == 0) {
        return msgsnd(meeting->queue, &message, 1, 0);
    }
    if (strcmp(name, "semop") == 0) {
        return semop(meeting->semaphore, &up, 1);
    }
    if (strcmp(name, "fifo") == 0) {
        return open(meeting->path, O_WRONLY | O_CLOEXEC) < 0;
    }
    if (strcmp(name, "inotify") == 0) {
        return open(meeting->path, O_CREAT | O_CLOEXEC, 0600) < 0;
    }
    if (strcmp(name, "write") == 0 || strcmp(name, "send") == 0) {
        drain(meeting->ends[strcmp(name, "send") == 0]);
        return 0;
    }
    return write(meeting->ends[1], "x", 1) != 1;
}

static void fill(int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, bytes, PIECE) == PIECE) {
    }
    fcntl(fd, F_SETFL, 0);
}

static long sleep_in(const char *name, const struct meeting *meeting, const sigset_t *signals) {
    char byte = 0;
    int status = 0;
    int signal = 0;
    siginfo_t about;
    struct message message;
    struct sembuf down = {0, -1, 0};
    sigset_t none;
    sigemptyset(&none);
    if (strcmp(name, "wait") == 0) {
        return wait(&status) > 0 ? WEXITSTATUS(status) : -1;
    }
    if (strcmp(name, "read") == 0) {
        return read(meeting->ends[0], &byte, 1);
    }
    if (strcmp(name, "recv") == 0) {
        return recv(meeting->ends[0], &byte, 1, 0);
    }
    if (strcmp(name, "sigsuspend") == 0) {
        return sigsuspend(&none);
    }
    if (strcmp(name, "sigwait") == 0) {
        return sigwait(signals, &signal) == 0 ? signal : -1;
    }
    if (strcmp(name, "sigwaitinfo") == 0) {
        return sigwaitinfo(signals, &about);
    }
    if (strcmp(name, "flock") == 0) {
        return flock(meeting->lock, LOCK_EX);
    }
    if (strcmp(name, "lock") == 0) {
        return fcntl(meeting->lock, F_SETLKW, &whole);
    }
    if (strcmp(name, "msgrcv") == 0) {
        return msgrcv(meeting->queue, &message, sizeof message.text, 0, 0);
    }
    if (strcmp(name, "semop") == 0) {
        return semop(meeting->semaphore, &down, 1);
    }
    if (strcmp(name, "fifo") == 0) {
        return open(meeting->path, O_RDONLY | O_CLOEXEC) < 0;
    }
    if (strcmp(name, "write") == 0) {
        return write(meeting->ends[1], bytes, PIECE);
    }
    if (strcmp(name, "send") == 0) {
        return send(meeting->ends[0], bytes, PIECE, 0);
    }
    if (strcmp(name, "inotify") == 0) {
        int watch = inotify_init1(IN_CLOEXEC);
        inotify_add_watch(watch, meeting->folder, IN_CREATE);
        return read(watch, bytes, sizeof bytes) > 0;
    }
    return -2;
}

static void sleep_in_handler(int signal) {
    (void)signal;
    wait_for_byte();
}

static ssize_t sleep_once(void *cookie, const char *text, size_t size) {
    int *has_slept = cookie;
    (void)text;
    if (!*has_slept) {
        *has_slept = 1;
        wait_for_byte();
    }
    return (ssize_t)size;
}

static int sleep_below_heap(void) {
    const cookie_io_functions_t to = {.write = sleep_once};
    int has_slept = 0;
    FILE *out = fopencookie(&has_slept, "w", to);
    setvbuf(out, NULL, _IONBF, 0);
    return malloc_info(0, out);
}

/* Until a byte comes. 0: it is another call. */
static int sleep_until_told(const char *name, long *result) {
    struct meeting meeting = {.lock = -1, .queue = -1, .semaphore = -1};
    sigset_t signals;
    int ready[2];
    char byte;
    if (strcmp(name, "join") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, sleep_on, NULL);
        *result = pthread_join(thread, NULL);
        return 1;
    }
    if (strcmp(name, "heap") == 0) {
        *result = sleep_below_heap();
        return 1;
    }
    if (strcmp(name, "handler") == 0) {
        signal(SIGALRM, sleep_in_handler);
        ualarm(10000, 0);
        *result = poll(NULL, 0, 60000);
        return 1;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    if (strncmp(name, "sig", 3) == 0) {
        sigprocmask(SIG_BLOCK, &signals, NULL);
    }
    if (meet(&meeting, name) != 0 || pipe(ready) != 0) {
        return 0;
    }
    if (strcmp(name, "write") == 0 || strcmp(name, "send") == 0) {
        fill(meeting.ends[strcmp(name, "write") == 0]);
    }
    if (fork() == 0) {
        hold(&meeting, name);
        _exit(write(ready[1], "x", 1) == 1 && wake(&meeting, name) == 0 ? 7 : 1);
    }
    if (read(ready[0], &byte, 1) != 1) {
        return 0;
    }
    errno = 0;
    *result = sleep_in(name, &meeting, &signals);
    part(&meeting);
    return *result != -2;
}

static int sleep_for_semaphore(const struct timespec *time) {
    int semaphore = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf down = {0, -1, 0};
    int result = semtimedop(semaphore, &down, 1, time);
    int reason = errno;
    semctl(semaphore, 0, IPC_RMID);
    errno = reason;
    return result;
}

/* 0: it is another call. */
static int sleep_for_a_while(const char *name, long *result) {
    struct timespec left = {0};
    const struct timespec time = {MS / 1000, MS % 1000 * 1000000};
    struct timeval value = {MS / 1000, MS % 1000 * 1000};
    struct pollfd none = {-1, 0, 0};
    sigset_t signals;
    sigemptyset(&signals);
    if (strcmp(name, "nanosleep") == 0) {
        *result = nanosleep(&time, &left);
    } else if (strcmp(name, "poll") == 0) {
        *result = poll(&none, 1, MS);
    } else if (strcmp(name, "select") == 0) {
        *result = select(0, NULL, NULL, NULL, &value);
    } else if (strcmp(name, "epoll") == 0) {
        *result = epoll_wait(epoll_create1(0), &(struct epoll_event){0}, 1, MS);
    } else if (strcmp(name, "sigtimed") == 0) {
        *result = sigtimedwait(&signals, NULL, &time);
    } else if (strcmp(name, "semtimed") == 0) {
        *result = sleep_for_semaphore(&time);
    } else {
        return 0;
    }
    return 1;
}

static void handle(int signal) {
    (void)signal;
}

/* Leaves the frame of a handled signal behind, below so much room. */
static void leave_frame(void) {
    volatile char room[ROOM / 2];
    room[0] = 0;
    raise(SIGUSR1);
    room[1] = 0;
}

/* In whose room that frame is. */
static int sleep_above(const char *name, long *result, int *reason) {
    volatile char room[ROOM];
    int is_timed;
    room[0] = 0;
    errno = 0;
    is_timed = sleep_for_a_while(name, result);
    if (!is_timed && !sleep_until_told(name, result)) {
        _exit(2);
    }
    *reason = errno;
    return is_timed + room[0];
}

int main(int argc, char **argv) {
    const char *name = argv[argc - 1];
    struct timespec from;
    struct timespec to;
    long result = -1;
    int is_timed;
    int reason;
    signal(SIGUSR1, handle);
    signal(SIGUSR2, handle);
    leave_frame();
    puts("ready");
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &from);
    is_timed = sleep_above(name, &result, &reason);
    clock_gettime(CLOCK_MONOTONIC, &to);
    long ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    printf("%ld %d %s\n", result, reason, is_timed && ms < MS - 5 ? "early" : "good");
    fflush(stdout);
    wait_for_byte();
    return 0;
}
