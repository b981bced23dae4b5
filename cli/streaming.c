/* SPDX-License-Identifier: MIT */
/* streaming.c: the processes that send a recording, or wait for others to take it. See streaming.h.
 */
#include "cli/streaming.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "collect/clock.h"
#include "collect/record.h"
#include "collect/recordparts.h"
#include "stream/channel.h"
#include "stream/discovery.h"
#include "stream/offering.h"
#include "stream/sender.h"
#include "stream/sourcename.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINGER_NS (60 * SECOND)
#define AGAIN_NS  (250 * MS) /* between two senders of one file, or two offerers */

enum {
    SENDERS_MOST = 64,
    ALL_BUT_INDEX = 100,
    UNFINISHED = 101,
    QUEUE_LEAST = 1 << 20,
    TO_MOST = 2 * CHANNEL_HOST,
};

/* What a sender or an offerer finds open, behind the three that each process has. */
enum { TASK_FD = 3, FILE_FD = 4, WORDS_FD = FILE_FD, LISTENER_FD = 5, FIRST_FREE_FD = 6 };

/* What it is to do: the bytes of TASK_FD. */
struct task {
    char to[TO_MOST];     /* a sender's: HOST[:PORT] */
    char token[PATH_MAX]; /* the file; "": none */
    uint64_t linger_ns;
    pid_t recorder;
    bool reopens; /* the recorder may go on with a file that has an index */
    bool frees_sent;
    bool allows_control;
    bool is_quiet;           /* the recorder says what is to be said of all */
    uint16_t discovery_port; /* an offerer's; 0: nobody is to find it */
};

struct streamed_file {
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
    struct task task;     /* of the next process; TASK_FD */
    uint64_t linger_ns;   /* after the end */
    uint64_t end_ns;      /* when the run was over; 0: it is not */
    bool rotates;         /* so the recorder reopens */
    bool has_told;        /* that it waits */
    bool is_stopped;      /* nobody wants to wait any more */
    pthread_mutex_t lock; /* of the list, which threads that record add to */
    struct streamed_file *files;
    size_t count, room;

    /* --to */
    const char *to; /* NULL: not so */
    uint64_t removed_files, removed_bytes;
    size_t senders; /* that run now */
    int reports[2]; /* a pipe */
    struct rest rest;

    /* --listen */
    int listener; /* -1: not so */
    char at[CHANNEL_SHOWN];
    int words; /* to the offerer; -1: there is none */
    pid_t offerer;
    uint64_t started_ns;
    size_t told; /* so many files the offerer has */
} streaming = {.lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1, .words = -1};

/* What a sender says at its end, on its standard output: a pipe of all of them. */
struct sender_report {
    pid_t sender;
    struct sender_progress progress;
    char why[256]; /* not all is there */
};

/* --queue: all of it is there, and what is left of it here is of no use. The recorder does it,
 * whose last look at the file it is; the sender where the recorder was killed. */
static uint64_t streaming_remove(int fd) {
    char name[PATH_MAX];
    struct stat there;
    struct stat here;
    source_path(fd, name);
    if (fstat(fd, &here) == 0 && lstat(name, &there) == 0 && here.st_ino == there.st_ino &&
        here.st_dev == there.st_dev && unlink(name) == 0) {
        return (uint64_t)here.st_size;
    }
    return 0;
}

/* ---- What commands that send or receive are told ---- */

static void streaming_forget_token(void *token) {
    token_free(token);
}

const struct token *streaming_token(const char *file) {
    struct error error;
    struct token *token = file != NULL && file[0] != '\0' ? token_read(file, &error) : NULL;
    if (token != NULL) {
        job_undo(streaming_forget_token, token);
    } else if (file != NULL && file[0] != '\0') {
        job_fail_as(&error);
    }
    return token;
}

uint16_t streaming_address(const char *command, const char *what, const char *text, bool is_peer,
                           char host[CHANNEL_HOST]) {
    struct error error;
    uint16_t port;
    if ((is_peer ? channel_peer : channel_split)(text, host, &port, &error) != 0) {
        cli_usage(command, "%s: %s", what, error.message);
    }
    return port;
}

void streaming_mind_stop(void) {
    cli_catch_stop();
    signal(SIGPIPE, SIG_IGN);
}

/* ---- Processes of their own ---- */

/* In one of them: the task, and its token, which may be NULL. */
static const struct token *streaming_task(const char *command, int argc, struct task *task) {
    const struct token *token;
    if (argc != 1 || read(TASK_FD, task, sizeof *task) != sizeof *task) {
        cli_usage(command, "started by memtrace record");
    }
    close(TASK_FD);
    token = streaming_token(task->token);
    streaming_mind_stop();
    return token;
}

static void keep_quiet(const char *line) {
    (void)line;
}

/* memtrace sender: of one file. */
static int run_sender(int argc, char **argv) {
    static const char *const reasons[] = {
        [SENDER_STOPPED] = "stopped",
        [SENDER_LATE] = "the time to linger is over",
    };
    struct sender_options asked = {.path = "/proc/self/fd/4", .stop = &cli_stop};
    struct sender_report report = {.sender = getpid()};
    struct error error = {""};
    struct task task;
    char host[CHANNEL_HOST];
    char name[PATH_MAX];
    asked.token = streaming_task(argv[0], argc, &task);
    job_check(channel_peer(task.to, host, &asked.port, &error), &error);
    source_path(FILE_FD, name);
    asked.name = name;
    asked.host = host;
    asked.linger_ns = task.linger_ns;
    asked.reopener = task.reopens ? task.recorder : 0;
    asked.tell = task.is_quiet ? keep_quiet : cli_tell;
    asked.frees_sent = task.frees_sent;
    asked.allows_control = task.allows_control;
    enum sender_result result = sender_run(&asked, &report.progress, &error);
    if (result == SENDER_ALL_BUT_INDEX) {
        return ALL_BUT_INDEX;
    }
    if (result == SENDER_DONE && !report.progress.is_finished) {
        return UNFINISHED; /* somebody may go on with what is in the region */
    }
    if (result == SENDER_DONE) {
        if (task.frees_sent && getppid() != task.recorder) {
            streaming_remove(FILE_FD);
        }
        return CLI_OK;
    }
    if (result == SENDER_FAILED) {
        snprintf(report.why, sizeof report.why, "%.255s", error.message);
    } else {
        snprintf(report.why, sizeof report.why, "%.200s: %s", task.to, reasons[result]);
    }
    /* Shorter than what a pipe takes as a whole. */
    return write(STDOUT_FILENO, &report, sizeof report) == sizeof report ? CLI_FAILURE : CLI_USAGE;
}

const struct command sender_command = {.name = "sender", .run = run_sender};

/* memtrace offerer: of all files of a run. */
static int run_offerer(int argc, char **argv) {
    struct offering_options asked = {
        .listener = LISTENER_FD, .words = WORDS_FD, .stop = &cli_stop, .tell = cli_tell};
    struct offering_rest rest;
    struct error error = {""};
    struct task task;
    asked.token = streaming_task(argv[0], argc, &task);
    asked.reopener = task.recorder;
    asked.linger_ns = task.linger_ns;
    asked.discovery_port = task.discovery_port;
    asked.allows_control = task.allows_control;
    int result = offering_run(&asked, &rest, &error);
    job_check(result < 0, &error);
    return result == 0 || send(WORDS_FD, &rest, sizeof rest, MSG_NOSIGNAL) == sizeof rest
               ? CLI_OK
               : CLI_FAILURE;
}

const struct command offerer_command = {.name = "offerer", .run = run_offerer};

/* In the forked child. The descriptors come behind that of the task. */
static noreturn void streaming_become(const char *command, int output, int *given, size_t count) {
    const struct task *task = &streaming.task;
    int told = memfd_create("task", MFD_CLOEXEC);
    bool is_ready =
        write(told, task, sizeof *task) == sizeof *task && lseek(told, 0, SEEK_SET) == 0;
    /* Out of the way of where they are to be. */
    told = fcntl(told, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    output = output >= 0 ? fcntl(output, F_DUPFD_CLOEXEC, FIRST_FREE_FD) : -1;
    for (size_t i = 0; i < count; i++) {
        given[i] = fcntl(given[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    }
    is_ready = is_ready && dup2(told, TASK_FD) >= 0;
    for (size_t i = 0; i < count; i++) {
        is_ready = is_ready && dup2(given[i], TASK_FD + 1 + (int)i) >= 0;
    }
    if (is_ready) {
        child_become((char *[]){"memtrace", (char *)(uintptr_t)command, NULL}, output);
    }
    _exit(CLI_FAILURE);
}

/* ---- Beginning ---- */

/* By a thread that records. A file that was lost sight of cannot be had: the line says so. */
static void streaming_add(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *why = fd < 0 ? strerror(errno) : "out of memory";
    pthread_mutex_lock(&streaming.lock);
    if (fd >= 0 && array_grow(&streaming.files, &streaming.room, streaming.count,
                              sizeof *streaming.files) == 0) {
        streaming.files[streaming.count++] = (struct streamed_file){.fd = fd};
    } else {
        cli_error(streaming.to != NULL ? "%s is not sent: %s" : "%s cannot be received: %s", path,
                  why);
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

/* What goes with a queue. */
static void begin_queue(struct variables *variables) {
    const char *queue = variables_get(variables, "MEMTRACE_QUEUE");
    uint64_t bytes = 0;
    if (queue == NULL || strcmp(queue, "0") == 0) {
        return;
    }
    if (variables->to == NULL) {
        cli_usage("record", "--queue belongs to --to");
    }
    if (quantity_bytes(queue, &bytes) != 0 || bytes < QUEUE_LEAST) {
        cli_usage("record", "--queue takes a size, 1M or more");
    }
    if (streaming.rotates) {
        cli_usage("record", "--queue and --rotate do not go together");
    }
    variables_set(variables, "MEMTRACE_SLICES", "0"); /* they are made of what is read again */
    streaming.task.frees_sent = true;
}

/* Waits a little. Whether somebody wants to wait no more. */
static bool wait_stopped(void) {
    const struct timespec pause = {.tv_nsec = 50000000};
    sigset_t signals = cli_endings();
    int number;
    sigaddset(&signals, SIGCHLD);
    number = sigtimedwait(&signals, NULL, &pause);
    return number > 0 && number != SIGCHLD;
}

/* Once, when it has waited for a while. */
static void tell_linger(uint64_t since_ns) {
    if (streaming.has_told || clock_now_ns() <= since_ns + SECOND) {
        return;
    }
    streaming.has_told = true;
    cli_error(
        streaming.to != NULL
            ? "the rest is sent to %s, for %.0f s at most, or until Ctrl-C"
            : "the recording can be received from %s for %.0f s more at most, or until Ctrl-C",
        streaming.to != NULL ? streaming.to : streaming.at, (double)streaming.linger_ns / 1e9);
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

static void begin_sending(const struct variables *variables, const char *host, uint16_t port,
                          const struct token *token) {
    streaming.to = variables->to;
    if (discovery_is_auto(host)) {
        choose_gatherer(host, port, token);
    }
    snprintf(streaming.task.to, sizeof streaming.task.to, "%s", streaming.to);
    if (pipe2(streaming.reports, O_CLOEXEC | O_NONBLOCK) != 0) {
        job_fail("cannot make a pipe: %s", strerror(errno));
    }
    record_lingers = linger;
}

static void begin_offering(const struct variables *variables, const char *host, uint16_t port,
                           const struct token *token) {
    char name[CHANNEL_SHOWN];
    struct error error = {""};
    streaming.listener = listening_open(host, port, token, &error);
    job_check(streaming.listener < 0, &error);
    listening_show(streaming.listener, streaming.at);
    listening_show_name(streaming.listener, name);
    if (variables->discoverable) {
        streaming.task.discovery_port =
            variables->discovery_port != 0 ? variables->discovery_port : CHANNEL_PORT;
    }
    cli_error("the recording can be received from %s%s: memtrace gather %s%s DIR", streaming.at,
              token != NULL ? " with the token" : ", on this machine only",
              token != NULL ? "--token FILE " : "", name);
}

void streaming_begin(struct variables *variables) {
    const char *rotate = variables_get(variables, "MEMTRACE_ROTATE");
    bool listens = variables->listen != NULL;
    char host[CHANNEL_HOST];
    uint16_t port;
    const struct token *token;
    streaming.rotates = rotate != NULL && rotate[0] != '\0' && strcmp(rotate, "0") != 0;
    begin_queue(variables);
    if (listens && variables->to != NULL) {
        cli_usage("record", "--to and --listen do not go together");
    }
    if (!listens && variables->to == NULL) {
        if (variables->token != NULL || variables->linger_ns != 0 || variables->allows_control) {
            cli_usage("record",
                      "--token, --linger and --allow-control belong to --to and --listen");
        }
        return;
    }
    port = streaming_address("record", listens ? "--listen" : "--to",
                             listens ? variables->listen : variables->to, !listens, host);
    token = streaming_token(variables->token);
    streaming.linger_ns = variables->linger_ns != 0 ? variables->linger_ns : LINGER_NS;
    streaming.task.allows_control = variables->allows_control;
    snprintf(streaming.task.token, sizeof streaming.task.token, "%s",
             variables->token != NULL ? variables->token : "");
    recordparts_opened = streaming_add;
    (listens ? begin_offering : begin_sending)(variables, host, port, token);
}

/* ---- Senders ---- */

static void start_sender(struct streamed_file *file, uint64_t now) {
    struct task *task = &streaming.task;
    uint64_t until = streaming.end_ns + streaming.linger_ns;
    file->started_ns = now;
    file->leaves_index = streaming.rotates && streaming.end_ns == 0;
    task->reopens = file->leaves_index;
    task->recorder = getpid();
    /* How long it may take behind the end of its file. */
    task->linger_ns = streaming.end_ns == 0 ? streaming.linger_ns : until > now ? until - now : 1;
    pid_t sender = fork();
    if (sender == 0) {
        streaming_become("sender", streaming.reports[1], &file->fd, 1);
    }
    if (sender > 0) {
        file->sender = sender;
        streaming.senders++;
        task->is_quiet = true; /* only the first one says when the connection is lost */
    }
}

static void add_rest(const struct streamed_file *file, const struct sender_report *report) {
    struct rest *rest = &streaming.rest;
    struct stat status;
    if (fstat(file->fd, &status) != 0 || status.st_nlink == 0) {
        return; /* it was one of a small process, whose sums are elsewhere */
    }
    if (rest->files++ == 0) {
        snprintf(rest->why, sizeof rest->why, "%s", report->why);
    }
    source_path(file->fd, rest->name);
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

/* Looks whether the sender has ended. Whether the file needs none any more; it is there as a whole
 * then, or its report was read. */
static bool is_sender_over(struct streamed_file *file) {
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

static void tend_senders(void) {
    uint64_t now = clock_now_ns();
    size_t kept = 0;
    for (size_t i = 0; i < streaming.count; i++) {
        struct streamed_file *file = &streaming.files[i];
        if (file->is_there || is_sender_over(file)) {
            /* The recorder has a last look at a whole file before the run is over. */
            if (file->is_there && streaming.task.frees_sent) {
                if (streaming.end_ns == 0) {
                    streaming.files[kept++] = *file;
                    continue;
                }
                streaming.removed_bytes += streaming_remove(file->fd);
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

/* Nobody wants to wait any more. */
static void stop_senders(void) {
    for (size_t i = 0; i < streaming.count; i++) {
        struct streamed_file *file = &streaming.files[i];
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

/* What was sent, and where what was not is. */
static void tell_sent(void) {
    struct rest *rest = &streaming.rest;
    const char *token = streaming.task.token[0] != '\0' ? " --token FILE" : "";
    struct number n;
    struct number missing;
    char path[2 * PATH_MAX];
    if (streaming.removed_files != 0) {
        fprintf(stderr, "memtrace: sent               %s, %s, to %s\n",
                number_items(&n, streaming.removed_files, "recording"),
                number_bytes(&missing, streaming.removed_bytes), streaming.to);
    }
    number_bytes(&missing, rest->missing);
    if (rest->files == 1) {
        cli_error("%s: %s have arrived, %s are only here; memtrace send --to %s%s %s sends them",
                  rest->why, number_bytes(&n, rest->sent), missing.text, streaming.to, token,
                  shellword_print(path, sizeof path, rest->name));
    } else if (rest->files > 1) {
        *strrchr(rest->name, '/') = '\0';
        cli_error("%s: %zu recordings (%s) are only here, in %s; memtrace send --to %s%s FILE "
                  "sends one",
                  rest->why, rest->files, missing.text, rest->name, streaming.to, token);
    }
}

static void end_sending(void) {
    /* Whoever left out an index that is the last one now is started again without. */
    for (size_t i = 0; i < streaming.count; i++) {
        if (streaming.files[i].sender > 0 && streaming.files[i].leaves_index) {
            kill(streaming.files[i].sender, SIGKILL);
        }
    }
    for (streaming_tick(); streaming.count != 0; streaming_tick()) {
        if (wait_stopped() || streaming.is_stopped) {
            stop_senders();
        }
        tell_linger(streaming.end_ns);
    }
    tell_sent();
}

/* ---- The offerer ---- */

static void start_offerer(uint64_t now) {
    int pair[2];
    streaming.started_ns = now;
    streaming.task.recorder = getpid();
    streaming.task.linger_ns = streaming.linger_ns;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return;
    }
    streaming.offerer = fork();
    if (streaming.offerer == 0) {
        streaming_become("offerer", -1, (int[]){pair[1], streaming.listener}, 2);
    }
    close(pair[1]);
    if (streaming.offerer < 0) {
        streaming.offerer = 0;
        close(pair[0]);
        return;
    }
    streaming.words = pair[0];
    streaming.told = 0;
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
    return sendmsg(streaming.words, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *word ? 0 : -1;
}

/* Whether it has ended by itself; `status` is how. */
static bool has_offerer_ended(int *status) {
    if (streaming.offerer <= 0 ||
        waitpid(streaming.offerer, status, WNOHANG) != streaming.offerer) {
        return false;
    }
    streaming.offerer = 0;
    return true;
}

static void hang_up(void) {
    if (streaming.words >= 0) {
        close(streaming.words);
    }
    streaming.words = -1;
}

/* Under the lock. */
static void tend_offerer(void) {
    const struct offering_word word = {.kind = OFFERING_FILE, .leaves_index = streaming.rotates};
    uint64_t now = clock_now_ns();
    int status;
    if (has_offerer_ended(&status)) {
        hang_up();
    }
    if (streaming.offerer == 0 &&
        (streaming.started_ns == 0 || now >= streaming.started_ns + AGAIN_NS)) {
        start_offerer(now);
    }
    while (streaming.words >= 0 && streaming.told < streaming.count &&
           tell_word(&word, streaming.files[streaming.told].fd) == 0) {
        streaming.told++;
    }
}

static void tell_not_taken(const struct offering_rest *rest) {
    const char *token = streaming.task.token[0] != '\0' ? " --token FILE" : "";
    char folder[sizeof rest->name];
    struct number n;
    number_bytes(&n, rest->missing);
    if (rest->files == 1) {
        cli_error("nobody has taken all of the recording: %s are only here; memtrace send --listen "
                  "%s%s %s offers it",
                  n.text, streaming.at, token, rest->name);
    } else if (rest->files > 1) {
        snprintf(folder, sizeof folder, "%s", rest->name);
        *strrchr(folder, '/') = '\0';
        cli_error("nobody has taken all of %u recordings: %s are only here, in %s; memtrace send "
                  "--listen %s%s %s/*.mtr offers them",
                  rest->files, n.text, folder, streaming.at, token, folder);
    }
}

static void end_offering(void) {
    const struct offering_word over = {.kind = OFFERING_OVER};
    struct offering_rest rest = {0};
    int status;
    do { /* killed: begun again, and told all of it again */
        while (streaming.offerer == 0 || streaming.told < streaming.count) {
            poll(NULL, 0, streaming.offerer == 0 ? 50 : 1);
            streaming_tick();
        }
        tell_word(&over, -1);
        while (!has_offerer_ended(&status)) {
            if (wait_stopped() && streaming.offerer > 0) {
                streaming.is_stopped = true;
                kill(streaming.offerer, SIGTERM);
            }
            tell_linger(streaming.end_ns);
        }
        if (recv(streaming.words, &rest, sizeof rest, MSG_DONTWAIT) == sizeof rest &&
            rest.kind == OFFERING_REST) {
            rest.name[sizeof rest.name - 1] = '\0';
            tell_not_taken(&rest);
        }
        hang_up();
    } while (WIFSIGNALED(status) && !streaming.is_stopped);
    close(streaming.listener);
}

/* ---- Of all ---- */

void streaming_tick(void) {
    pthread_mutex_lock(&streaming.lock);
    if (streaming.to != NULL) {
        tend_senders();
    } else if (streaming.listener >= 0) {
        tend_offerer();
    }
    pthread_mutex_unlock(&streaming.lock);
}

void streaming_end(void) {
    streaming.end_ns = clock_now_ns();
    if (streaming.to != NULL) {
        end_sending();
    } else if (streaming.listener >= 0) {
        end_offering();
    }
    free(streaming.files);
}
