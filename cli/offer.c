/* SPDX-License-Identifier: MIT */
/* offer.c: the process that others connect to. See offer.h. */
#include "cli/offer.h"

#include "analyze/rows/number.h"
#include "cli/cli.h"
#include "cli/stopping.h"
#include "collect/clock.h"
#include "collect/recordparts.h"
#include "stream/listening.h"
#include "stream/offering.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS       UINT64_C(1000000)
#define AGAIN_NS (250 * MS) /* between two offerers */

enum { WORDS_FD = 3, LISTENER_FD = 4, FIRST_FREE_FD = 5 };

static struct {
    const char *token;
    char at[CHANNEL_SHOWN];
    uint64_t linger_ns;
    uint16_t discovery_port; /* 0: nobody is to find it */
    bool rotates;
    bool allows_control;
    int listener;
    int words; /* to the offerer; -1: there is none */
    pid_t offerer;
    uint64_t started_ns;
    bool is_over;         /* nobody wants to wait any more */
    pthread_mutex_t lock; /* of the list, which threads that record add to */
    int *files;
    size_t count, room;
    size_t told; /* so many the offerer has */
} offer = {.lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1, .words = -1};

/* ---- The offerer's process ---- */

/* memtrace offerer TOKEN LINGER REOPENER DISCOVERY-PORT CONTROL */
static int run_offerer(int argc, char **argv) {
    struct offering_options asked = {
        .listener = LISTENER_FD, .words = WORDS_FD, .stop = &stopping_signal, .tell = cli_tell};
    struct offering_rest rest;
    struct error error = {""};
    struct token *token = NULL;
    uint64_t reopener;
    uint64_t discovery;
    int result;
    if (argc != 6 || quantity_u64(argv[4], &discovery) != 0 ||
        quantity_u64(argv[2], &asked.linger_ns) != 0 || quantity_u64(argv[3], &reopener) != 0) {
        return cli_usage("offerer", "started by memtrace record --listen");
    }
    if (argv[1][0] != '\0' && (token = token_read(argv[1], &error)) == NULL) {
        return cli_error("%s", error.message);
    }
    asked.token = token;
    asked.reopener = (pid_t)reopener;
    asked.discovery_port = (uint16_t)discovery;
    asked.allows_control = strcmp(argv[5], "control") == 0;
    stopping_catch();
    signal(SIGPIPE, SIG_IGN);
    result = offering_run(&asked, &rest, &error);
    token_free(token);
    if (result < 0) {
        return cli_error("%s", error.message);
    }
    return result == 0 || send(WORDS_FD, &rest, sizeof rest, MSG_NOSIGNAL) == sizeof rest
               ? CLI_OK
               : CLI_FAILURE;
}

const struct command offerer_command = {.name = "offerer", .run = run_offerer};

/* ---- Beside the program ---- */

/* By a thread that records. A file that was lost sight of cannot be had: the line says so. */
static void add_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    pthread_mutex_lock(&offer.lock);
    if (offer.count == offer.room) {
        int *grown = reallocarray(offer.files, offer.room * 2 + 8, sizeof *grown);
        if (grown != NULL) {
            offer.files = grown;
            offer.room = offer.room * 2 + 8;
        }
    }
    if (fd >= 0 && offer.count < offer.room) {
        offer.files[offer.count++] = fd;
    } else {
        cli_error("%s cannot be received: %s", path, fd < 0 ? strerror(errno) : "out of memory");
    }
    pthread_mutex_unlock(&offer.lock);
}

int offer_begin(const struct variables *variables, bool rotates) {
    char host[CHANNEL_HOST];
    char name[CHANNEL_SHOWN];
    uint16_t port;
    struct error error = {""};
    struct token *token = NULL;
    if (channel_split(variables->listen, host, &port, &error) != 0) {
        return cli_usage("record", "--listen: %s", error.message);
    }
    if (variables->token != NULL && (token = token_read(variables->token, &error)) == NULL) {
        return cli_error("%s", error.message);
    }
    offer.listener = listening_open(host, port, token, &error);
    token_free(token);
    if (offer.listener < 0) {
        return cli_error("%s", error.message);
    }
    listening_show(offer.listener, offer.at);
    listening_show_name(offer.listener, name);
    offer.token = variables->token != NULL ? variables->token : "";
    offer.rotates = rotates;
    offer.allows_control = variables->allows_control;
    offer.linger_ns = variables->linger_ns;
    if (variables->discoverable) {
        offer.discovery_port =
            variables->discovery_port != 0 ? variables->discovery_port : CHANNEL_PORT;
    }
    recordparts_opened = add_file;
    cli_error("the recording can be received from %s%s: memtrace gather %s%s DIR", offer.at,
              token != NULL ? " with the token" : ", on this machine only",
              token != NULL ? "--token FILE " : "", name);
    return CLI_OK;
}

/* In the forked child, not in our process group: Ctrl-C while the program runs is for the program.
 */
_Noreturn static void become_offerer(int words, pid_t recorder) {
    char linger[24];
    char parent[24];
    char discovery[8];
    sigset_t none;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* Out of the way of where they are to be. */
    int words_copy = fcntl(words, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    int listener_copy = fcntl(offer.listener, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    snprintf(linger, sizeof linger, "%" PRIu64, offer.linger_ns);
    snprintf(parent, sizeof parent, "%ld", (long)recorder);
    snprintf(discovery, sizeof discovery, "%u", offer.discovery_port);
    sigemptyset(&none);
    if (setpgid(0, 0) == 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(nothing, STDOUT_FILENO) >= 0 && dup2(words_copy, WORDS_FD) >= 0 &&
        dup2(listener_copy, LISTENER_FD) >= 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0) {
        execl("/proc/self/exe", "memtrace", "offerer", offer.token, linger, parent, discovery,
              offer.allows_control ? "control" : "-", (char *)NULL);
    }
    _exit(CLI_FAILURE);
}

static void start_offerer(uint64_t now) {
    pid_t recorder = getpid();
    int pair[2];
    offer.started_ns = now;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return;
    }
    offer.offerer = fork();
    if (offer.offerer == 0) {
        become_offerer(pair[1], recorder);
    }
    close(pair[1]);
    if (offer.offerer < 0) {
        offer.offerer = 0;
        close(pair[0]);
        return;
    }
    offer.words = pair[0];
    offer.told = 0;
}

/* 0, or -1: not now, or nobody is there. */
static int tell_word(const struct offering_word *word, int fd) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec vector = {(void *)(uintptr_t)word, sizeof *word};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    if (fd >= 0) {
        struct cmsghdr *extra;
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        extra = CMSG_FIRSTHDR(&message);
        extra->cmsg_level = SOL_SOCKET;
        extra->cmsg_type = SCM_RIGHTS;
        extra->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(extra), &fd, sizeof fd);
    }
    return sendmsg(offer.words, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *word ? 0 : -1;
}

static void tell_files(void) {
    struct offering_word word = {.kind = OFFERING_FILE, .leaves_index = offer.rotates};
    pthread_mutex_lock(&offer.lock);
    while (offer.told < offer.count && tell_word(&word, offer.files[offer.told]) == 0) {
        offer.told++;
    }
    pthread_mutex_unlock(&offer.lock);
}

/* Whether it has ended by itself; `status` is how. */
static bool has_ended(int *status) {
    if (offer.offerer <= 0 || waitpid(offer.offerer, status, WNOHANG) != offer.offerer) {
        return false;
    }
    offer.offerer = 0;
    return true;
}

static void hang_up(void) {
    if (offer.words >= 0) {
        close(offer.words);
    }
    offer.words = -1;
}

void offer_tick(void) {
    uint64_t now = clock_now_ns();
    int status;
    if (offer.listener < 0) {
        return;
    }
    if (has_ended(&status)) {
        hang_up();
    }
    if (offer.offerer == 0 && (offer.started_ns == 0 || now >= offer.started_ns + AGAIN_NS)) {
        start_offerer(now);
    }
    if (offer.words >= 0) {
        tell_files();
    }
}

/* ---- The end ---- */

static void tell_rest(const struct offering_rest *rest) {
    const char *token = offer.token[0] != '\0' ? " --token FILE" : "";
    char folder[sizeof rest->name];
    struct number n;
    number_bytes(&n, rest->missing);
    if (rest->files == 1) {
        cli_error("nobody has taken all of the recording: %s are only here; memtrace send --listen "
                  "%s%s %s offers it",
                  n.text, offer.at, token, rest->name);
    } else if (rest->files > 1) {
        snprintf(folder, sizeof folder, "%s", rest->name);
        *strrchr(folder, '/') = '\0';
        cli_error("nobody has taken all of %u recordings: %s are only here, in %s; memtrace send "
                  "--listen %s%s %s/*.mtr offers them",
                  rest->files, n.text, folder, offer.at, token, folder);
    }
}

/* Until the offerer has ended; how it ended. */
static int wait_for_offerer(void) {
    const struct timespec pause = {.tv_nsec = 50000000};
    uint64_t end = clock_now_ns();
    bool told = false;
    int status = -1;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    while (!has_ended(&status)) {
        int number = sigtimedwait(&signals, NULL, &pause);
        if (number > 0 && number != SIGCHLD && offer.offerer > 0) {
            offer.is_over = true;
            kill(offer.offerer, SIGTERM);
        }
        if (!told && clock_now_ns() > end + 1000 * MS) {
            told = true;
            cli_error(
                "the recording can be received from %s for %.0f s more at most, or until Ctrl-C",
                offer.at, (double)offer.linger_ns / 1e9);
        }
    }
    return status;
}

void offer_end(uint64_t linger_ns) {
    const struct offering_word over = {.kind = OFFERING_OVER};
    struct offering_rest rest = {0};
    int status;
    if (offer.listener < 0) {
        return;
    }
    offer.linger_ns = linger_ns;
    do { /* killed: begun again, and told all of it again */
        while (offer.offerer == 0 || offer.told < offer.count) {
            poll(NULL, 0, offer.offerer == 0 ? 50 : 1);
            offer_tick();
        }
        tell_word(&over, -1);
        status = wait_for_offerer();
        if (recv(offer.words, &rest, sizeof rest, MSG_DONTWAIT) == sizeof rest &&
            rest.kind == OFFERING_REST) {
            rest.name[sizeof rest.name - 1] = '\0';
            tell_rest(&rest);
        }
        hang_up();
    } while (WIFSIGNALED(status) && !offer.is_over);
    close(offer.listener);
    free(offer.files);
}
