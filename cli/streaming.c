/* SPDX-License-Identifier: MIT */
/* streaming.c: the senders of a recording, and what each of them does. See streaming.h. */
#include "cli/streaming.h"

#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "cli/offer.h"
#include "cli/stopping.h"
#include "collect/clock.h"
#include "collect/record.h"
#include "collect/recordparts.h"
#include "stream/discovery.h"
#include "stream/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS        UINT64_C(1000000)
#define LINGER_NS (60000 * MS)
#define AGAIN_NS  (250 * MS) /* between two senders of one file */

enum {
    SENDERS_MOST = 64,
    FILE_FD = 3,
    ALL_BUT_INDEX = 100,
    UNFINISHED = 101,
    QUEUE_LEAST = 1 << 20
};

struct sent_file {
    int fd;            /* the file, whatever its name is by now */
    pid_t sender;      /* 0: none */
    bool leaves_index; /* the sender leaves it out, since the recorder will */
    bool lacks_index;  /* that alone was not sent */
    bool is_there;     /* all of it was sent */
    bool is_reported;  /* what was not is among the rest */
    uint64_t started_ns;
};

/* What could not be sent. */
struct rest {
    size_t files;
    uint64_t sent, missing;
    char name[PATH_MAX]; /* of one of them */
    char why[256];
};

static struct {
    const char *to, *token;
    uint64_t linger_ns;
    uint64_t end_ns; /* when the run was over; 0: it is not */
    bool rotates;
    bool allows_control;
    bool keeps_none; /* --queue: what was sent is freed */
    uint64_t removed_files, removed_bytes;
    size_t senders;  /* that run now */
    size_t started;  /* ever; only the first one says when the connection is lost */
    int reports[2];  /* a pipe */
    bool has_told;   /* that it waits */
    bool is_stopped; /* nobody wants to wait any more */
    struct rest rest;
    pthread_mutex_t lock; /* of the list, which threads that record add to */
    struct sent_file *files;
    size_t count, room;
} streaming = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a sender says at its end, on its standard output: a pipe of all of them. */
struct sender_report {
    pid_t sender;
    struct sender_progress progress;
    char why[256]; /* not all is there */
};

/* What the file is called now: the folder of a run gets its name at the end. */
static void name_of(int fd, char name[PATH_MAX]) {
    char link[32];
    ssize_t size;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, name, PATH_MAX - 1);
    name[size > 0 ? size : 0] = '\0';
}

/* --queue: all of it is there, and what is left of it here is of no use. The recorder does it,
 * whose last look at the file it is; the sender where the recorder was killed. */
static uint64_t remove_sent(int fd) {
    char name[PATH_MAX];
    struct stat there;
    struct stat here;
    name_of(fd, name);
    if (fstat(fd, &here) == 0 && lstat(name, &there) == 0 && here.st_ino == there.st_ino &&
        here.st_dev == there.st_dev && unlink(name) == 0) {
        return (uint64_t)here.st_size;
    }
    return 0;
}

/* ---- The sender's process ---- */

static void print(const char *line) {
    print_safe(stderr, "memtrace: %s\n", line);
}

/* One of many: the recorder says what is to be said of all. */
static void keep_quiet(const char *line) {
    (void)line;
}

static int send_beside(const struct sender_options *asked, const char *to, pid_t recorder) {
    static const char *const reasons[] = {
        [SENDER_STOPPED] = "stopped",
        [SENDER_LATE] = "the time to linger is over",
    };
    struct sender_report report = {.sender = getpid()};
    struct error error = {""};
    enum sender_result result = sender_run(asked, &report.progress, &error);
    if (result == SENDER_DONE) {
        if (!report.progress.is_finished) {
            return UNFINISHED; /* somebody may go on with what is in the region */
        }
        if (asked->frees_sent && getppid() != recorder) {
            remove_sent(FILE_FD);
        }
        return CLI_OK;
    }
    if (result == SENDER_ALL_BUT_INDEX) {
        return ALL_BUT_INDEX;
    }
    if (result == SENDER_FAILED) {
        snprintf(report.why, sizeof report.why, "%s", error.message);
    } else {
        snprintf(report.why, sizeof report.why, "%s: %s", to, reasons[result]);
    }
    /* Shorter than what a pipe takes as a whole. */
    return write(STDOUT_FILENO, &report, sizeof report) == sizeof report ? CLI_FAILURE : CLI_USAGE;
}

/* memtrace sender TO TOKEN LINGER RECORDER REOPENS HOW FREE CONTROL, the file is descriptor 3. */
static int run_sender(int argc, char **argv) {
    struct sender_options asked = {.path = "/proc/self/fd/3", .stop = &stopping_signal};
    struct error error = {""};
    struct token *token = NULL;
    char host[CHANNEL_HOST];
    char name[PATH_MAX];
    uint64_t recorder;
    int status;
    if (argc != 9 || channel_peer(argv[1], host, &asked.port, &error) != 0 ||
        quantity_u64(argv[3], &asked.linger_ns) != 0 || quantity_u64(argv[4], &recorder) != 0) {
        return cli_usage("sender", "started by memtrace record --to");
    }
    if (argv[2][0] != '\0' && (token = token_read(argv[2], &error)) == NULL) {
        return cli_error("%s", error.message);
    }
    name_of(FILE_FD, name);
    asked.name = name;
    asked.host = host;
    asked.token = token;
    asked.reopener = strcmp(argv[5], "reopens") == 0 ? (pid_t)recorder : 0;
    asked.tell = strcmp(argv[6], "quiet") == 0 ? keep_quiet : print;
    asked.frees_sent = strcmp(argv[7], "free") == 0;
    asked.allows_control = strcmp(argv[8], "control") == 0;
    stopping_catch();
    signal(SIGPIPE, SIG_IGN);
    status = send_beside(&asked, argv[1], (pid_t)recorder);
    token_free(token);
    return status;
}

const struct command sender_command = {.name = "sender", .run = run_sender};

/* ---- Beside the program ---- */

/* By a thread that records. A file that was lost sight of is not sent: the line says so. */
static void add_file(const char *path) {
    struct sent_file *grown;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    pthread_mutex_lock(&streaming.lock);
    if (streaming.count == streaming.room) {
        grown = reallocarray(streaming.files, streaming.room * 2 + 8, sizeof *grown);
        if (grown != NULL) {
            streaming.files = grown;
            streaming.room = streaming.room * 2 + 8;
        }
    }
    if (fd >= 0 && streaming.count < streaming.room) {
        streaming.files[streaming.count++] = (struct sent_file){.fd = fd};
    } else {
        cli_error("%s is not sent: %s", path, fd < 0 ? strerror(errno) : "out of memory");
    }
    pthread_mutex_unlock(&streaming.lock);
}

/* All files are to go to one gatherer, so the first that answers is asked for by its name. */
static void choose_gatherer(const char *host, uint16_t port, const struct token *token) {
    static char chosen[CHANNEL_HOST + 8];
    static const volatile sig_atomic_t never;
    struct discovery_found gatherer;
    struct error error = {"no gatherer answers yet"};
    if (discovery_find_gatherer(host, port, token, &never, &gatherer, &error) != 1) {
        cli_error("%s; one is looked for as long as it takes", error.message);
        return;
    }
    discovery_auto_host(gatherer.answer.id, chosen);
    snprintf(chosen + strlen(chosen), 8, ":%u", port);
    streaming.to = chosen;
    cli_error("sending to the gatherer at %s, of %s on %s", gatherer.shown, gatherer.answer.what,
              gatherer.answer.host);
}

/* What goes with a queue. CLI_OK, or the exit status with the line printed. */
static int begin_queue(struct variables *variables) {
    const char *queue = variables_get(variables, "MEMTRACE_QUEUE");
    const char *rotate = variables_get(variables, "MEMTRACE_ROTATE");
    uint64_t bytes = 0;
    if (queue == NULL || strcmp(queue, "0") == 0) {
        return CLI_OK;
    }
    if (variables->to == NULL) {
        return cli_usage("record", "--queue belongs to --to");
    }
    if (quantity_bytes(queue, &bytes) != 0 || bytes < QUEUE_LEAST) {
        return cli_usage("record", "--queue takes a size, 1M or more");
    }
    if (rotate != NULL && rotate[0] != '\0' && strcmp(rotate, "0") != 0) {
        return cli_usage("record", "--queue and --rotate do not go together");
    }
    variables_set(variables, "MEMTRACE_SLICES", "0"); /* they are made of what is read again */
    streaming.keeps_none = true;
    return CLI_OK;
}

/* Waits a little. Whether somebody wants to wait no more. */
static bool wait_stopped(void) {
    const struct timespec pause = {.tv_nsec = 50000000};
    sigset_t signals;
    int number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    number = sigtimedwait(&signals, NULL, &pause);
    return number > 0 && number != SIGCHLD;
}

/* Once, when it has waited for a while. */
static void tell_linger(uint64_t since_ns) {
    if (streaming.has_told || clock_now_ns() <= since_ns + 1000 * MS) {
        return;
    }
    streaming.has_told = true;
    cli_error("the rest is sent to %s, for %.0f s at most, or until Ctrl-C", streaming.to,
              (double)streaming.linger_ns / 1e9);
}

/* A program is gone, and what it left waits for room (record_lingers). Its end is not the run's. */
static bool linger(uint64_t since_ns) {
    streaming_tick();
    if (!streaming.is_stopped) {
        tell_linger(since_ns);
    }
    streaming.is_stopped |= wait_stopped() || clock_now_ns() >= since_ns + streaming.linger_ns;
    return !streaming.is_stopped;
}

int streaming_begin(struct variables *variables) {
    const char *rotate = variables_get(variables, "MEMTRACE_ROTATE");
    char host[CHANNEL_HOST];
    uint16_t port;
    struct error error = {""};
    struct token *token = NULL;
    int status = begin_queue(variables);
    if (status != CLI_OK) {
        return status;
    }
    streaming.rotates = rotate != NULL && rotate[0] != '\0' && strcmp(rotate, "0") != 0;
    streaming.linger_ns = variables->linger_ns != 0 ? variables->linger_ns : LINGER_NS;
    if (variables->listen != NULL) {
        return variables->to == NULL ? offer_begin(variables, streaming.rotates)
                                     : cli_usage("record", "--to and --listen do not go together");
    }
    if (variables->to == NULL) {
        return variables->token == NULL && variables->linger_ns == 0 && !variables->allows_control
                   ? CLI_OK
                   : cli_usage("record", "--token, --linger and --allow-control belong to --to and "
                                         "--listen");
    }
    if (channel_peer(variables->to, host, &port, &error) != 0) {
        return cli_usage("record", "--to: %s", error.message);
    }
    if (variables->token != NULL) {
        token = token_read(variables->token, &error);
        if (token == NULL) {
            return cli_error("%s", error.message);
        }
    }
    streaming.to = variables->to;
    streaming.allows_control = variables->allows_control;
    streaming.token = variables->token != NULL ? variables->token : "";
    if (discovery_is_auto(host)) {
        choose_gatherer(host, port, token);
    }
    token_free(token);
    if (pipe2(streaming.reports, O_CLOEXEC | O_NONBLOCK) != 0) {
        return cli_error("cannot make a pipe: %s", strerror(errno));
    }
    recordparts_opened = add_file;
    record_lingers = linger;
    return CLI_OK;
}

/* In the forked child, not in our process group: Ctrl-C while the program runs is for the program.
 */
_Noreturn static void become_sender(int fd, uint64_t linger_ns, pid_t recorder, bool reopens,
                                    bool is_quiet) {
    char linger[24];
    char parent[24];
    sigset_t none;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(linger, sizeof linger, "%" PRIu64, linger_ns);
    snprintf(parent, sizeof parent, "%ld", (long)recorder);
    sigemptyset(&none);
    if (setpgid(0, 0) == 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(streaming.reports[1], STDOUT_FILENO) >= 0 &&
        (fd == FILE_FD ? fcntl(fd, F_SETFD, 0) : dup2(fd, FILE_FD)) >= 0 &&
        sigprocmask(SIG_SETMASK, &none, NULL) == 0) {
        execl("/proc/self/exe", "memtrace", "sender", streaming.to, streaming.token, linger, parent,
              reopens ? "reopens" : "-", is_quiet ? "quiet" : "loud",
              streaming.keeps_none ? "free" : "keep", streaming.allows_control ? "control" : "-",
              (char *)NULL);
    }
    _exit(CLI_FAILURE);
}

/* How long a sender that is started now may take behind the end of its file. */
static uint64_t left_to_linger(uint64_t now) {
    uint64_t until = streaming.end_ns + streaming.linger_ns;
    if (streaming.end_ns == 0) {
        return streaming.linger_ns;
    }
    return until > now ? until - now : 1;
}

static void start_sender(struct sent_file *file, uint64_t now) {
    bool leaves_index = streaming.rotates && streaming.end_ns == 0;
    pid_t recorder = getpid();
    pid_t sender = fork();
    file->started_ns = now;
    file->leaves_index = leaves_index;
    if (sender == 0) {
        become_sender(file->fd, left_to_linger(now), recorder, leaves_index,
                      streaming.started != 0);
    }
    if (sender > 0) {
        file->sender = sender;
        streaming.senders++;
        streaming.started++;
    }
}

static void add_rest(const struct sent_file *file, const struct sender_report *report) {
    struct rest *rest = &streaming.rest;
    struct stat status;
    if (fstat(file->fd, &status) != 0 || status.st_nlink == 0) {
        return; /* it was one of a small process, whose sums are elsewhere */
    }
    if (rest->files++ == 0) {
        snprintf(rest->why, sizeof rest->why, "%s", report->why);
    }
    name_of(file->fd, rest->name);
    rest->sent += report->progress.sent;
    rest->missing += (uint64_t)status.st_size > report->progress.sent
                         ? (uint64_t)status.st_size - report->progress.sent
                         : 0;
}

/* Reports stand in the pipe before their writers end. */
static void read_reports(void) {
    struct sender_report report;
    while (read(streaming.reports[0], &report, sizeof report) == sizeof report) {
        for (size_t i = 0; i < streaming.count; i++) {
            if (streaming.files[i].sender == report.sender) {
                add_rest(&streaming.files[i], &report);
                streaming.files[i].is_reported = true;
            }
        }
    }
}

/* Where what is not here any more is. */
static void tell_removed(void) {
    struct number files;
    struct number bytes;
    if (streaming.removed_files != 0) {
        fprintf(stderr, "memtrace: sent               %s, %s, to %s\n",
                number_items(&files, streaming.removed_files, "recording"),
                number_bytes(&bytes, streaming.removed_bytes), streaming.to);
    }
}

static void tell_rest(void) {
    struct rest *rest = &streaming.rest;
    const char *token = streaming.token[0] != '\0' ? " --token FILE" : "";
    struct number sent;
    struct number missing;
    char path[2 * PATH_MAX];
    number_bytes(&sent, rest->sent);
    number_bytes(&missing, rest->missing);
    if (rest->files == 1) {
        cli_error("%s: %s have arrived, %s are only here; memtrace send --to %s%s %s sends them",
                  rest->why, sent.text, missing.text, streaming.to, token,
                  shellword_print(path, sizeof path, rest->name));
    } else if (rest->files > 1) {
        *strrchr(rest->name, '/') = '\0';
        cli_error("%s: %zu recordings (%s) are only here, in %s; memtrace send --to %s%s FILE "
                  "sends one",
                  rest->why, rest->files, missing.text, rest->name, streaming.to, token);
    }
}

/* Looks whether the sender has ended. Whether the file needs none any more; it is there as a whole
 * then, or its report was read. */
static bool is_over(struct sent_file *file) {
    int status;
    if (file->sender == 0 || waitpid(file->sender, &status, WNOHANG) != file->sender) {
        return false;
    }
    read_reports();
    file->sender = 0;
    streaming.senders--;
    file->lacks_index = WIFEXITED(status) && WEXITSTATUS(status) == ALL_BUT_INDEX;
    file->is_there = WIFEXITED(status) && WEXITSTATUS(status) == CLI_OK;
    if (WIFEXITED(status) && !file->is_reported && !file->lacks_index && !file->is_there &&
        WEXITSTATUS(status) != UNFINISHED) { /* it could not even begin, and has said why */
        add_rest(file, &(struct sender_report){.why = "a sender could not be started"});
    }
    return WIFEXITED(status) && !file->lacks_index;
}

static void tend(void) {
    uint64_t now = clock_now_ns();
    size_t kept = 0;
    for (size_t i = 0; i < streaming.count; i++) {
        struct sent_file *file = &streaming.files[i];
        if (file->is_there || is_over(file)) {
            /* The recorder has a last look at a whole file before the run is over. */
            if (file->is_there && streaming.keeps_none) {
                if (streaming.end_ns == 0) {
                    streaming.files[kept++] = *file;
                    continue;
                }
                streaming.removed_bytes += remove_sent(file->fd);
                streaming.removed_files++;
            }
            close(file->fd);
            continue;
        }
        if (file->sender == 0 && streaming.senders < SENDERS_MOST &&
            (!file->lacks_index || streaming.end_ns != 0) &&
            (file->started_ns == 0 || now >= file->started_ns + AGAIN_NS)) {
            start_sender(file, now);
        }
        streaming.files[kept++] = *file;
    }
    streaming.count = kept;
}

void streaming_tick(void) {
    pthread_mutex_lock(&streaming.lock);
    tend();
    pthread_mutex_unlock(&streaming.lock);
    offer_tick();
}

/* Nobody wants to wait any more. */
static void stop_all(void) {
    for (size_t i = 0; i < streaming.count; i++) {
        struct sent_file *file = &streaming.files[i];
        if (file->sender > 0) {
            kill(file->sender, SIGTERM);
            waitpid(file->sender, NULL, 0);
            read_reports();
        } else if (!file->is_there) {
            add_rest(file, &(struct sender_report){.why = "stopped"});
        }
    }
    streaming.count = 0;
}

/* Whoever left out an index that is the last one now is started again without. */
static void restart_partial(void) {
    for (size_t i = 0; i < streaming.count; i++) {
        if (streaming.files[i].sender > 0 && streaming.files[i].leaves_index) {
            kill(streaming.files[i].sender, SIGKILL);
        }
    }
}

void streaming_end(void) {
    offer_end(streaming.linger_ns);
    if (streaming.to == NULL) {
        return;
    }
    streaming.end_ns = clock_now_ns();
    restart_partial();
    for (streaming_tick(); streaming.count != 0; streaming_tick()) {
        if (wait_stopped() || streaming.is_stopped) {
            stop_all();
        }
        tell_linger(streaming.end_ns);
    }
    tell_removed();
    tell_rest();
    free(streaming.files);
}
