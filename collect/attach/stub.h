/* SPDX-License-Identifier: MIT */
/*
 * stub.h: the code that runs in a program that is attached to, and what it reads (of each machine
 * one: stub_x86_64.S, stub_aarch64.S). It lies in the padding behind some library's code, and is
 * the same bytes each time.
 *
 * The thread that was stopped goes on at stub_lead, which starts a thread at stub_thread and then
 * puts back every register, so that it needs nobody: whoever stopped it may be killed meanwhile.
 */
#ifndef COLLECT_ATTACH_STUB_H
#define COLLECT_ATTACH_STUB_H

/* Bytes between the stopped thread's stack pointer and the uppermost of ours: its red zone and
 * some. (x86-64: the word there is where it goes on.) */
#define STUB_GAP 512

/* Of struct stub_thread, in a mapping of its own. */
#define STUB_STATE          0
#define STUB_ACK            4
#define STUB_RESULT         8
#define STUB_FILE           12
#define STUB_MAPPED         16
#define STUB_PAUSE          24
#define STUB_PTHREAD_SELF   40
#define STUB_PTHREAD_DETACH 48
#define STUB_DLOPEN         56
#define STUB_DLSYM          64
#define STUB_DLERROR        72
#define STUB_MUNMAP         80
#define STUB_FUNCTION       88
#define STUB_NAME           96
#define STUB_ENTRY          112
#define STUB_MESSAGE        144
#define STUB_MESSAGE_SIZE   256
#define STUB_PATH           400
#define STUB_PATH_SIZE      1024
#define STUB_SETTINGS       1424
#define STUB_SETTINGS_SIZE  4096
#define STUB_WANTS          5520
#define STUB_GO             5524
#define STUB_FILE_NAME      5528
#define STUB_OWN_TID        5544
#define STUB_THREAD_SIZE    5552

/* Of struct stub_frame, on the stopped thread's stack. */
#define STUB_REGISTERS      0
#define STUB_PTHREAD_CREATE 8
#define STUB_START          16
#define STUB_PLACE          24
#define STUB_PLACE_SIZE     32
#define STUB_MASK           40
#define STUB_OLD_MASK       48
#define STUB_ID             56
#define STUB_IS_SETTLED     64
#define STUB_DATA           72

/* Its state. */
#define STUB_WAITING     0
#define STUB_CALLED      1
#define STUB_NOT_LOADED  2
#define STUB_NOT_STARTED 3
#define STUB_FILLING     4

/* What it waits for before it loads anything. */
#define STUB_WANTS_FILLING 1 /* what lies behind struct stub_thread */
#define STUB_WANTS_FILE    2 /* the library, in a file of memory that it makes */
#define STUB_WAITS_FOR     3 /* either */
/* Not that: descriptors of its own, so that what it opens takes no number that the program counts
 * on just then. Of the program's it keeps the first three alone, for messages: the others are not
 * held open. */
#define STUB_WANTS_DESCRIPTORS 4
#define STUB_CLOSE_RANGE       436 /* on each machine; Linux 5.9 */
#define STUB_FIRST_OTHER       3
#define STUB_UNSHARE           2 /* CLOSE_RANGE_UNSHARE */

/* What it is told then. */
#define STUB_GO_ON   1
#define STUB_GIVE_UP 2

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct stub_thread {
    uint32_t state;  /* STUB_WAITING, ... */
    uint32_t ack;    /* the result was read: the mapping may go */
    int32_t result;  /* of the function, or an errno */
    int32_t file;    /* descriptor of the file of memory, or a negative errno */
    uint64_t mapped; /* bytes */
    struct timespec pause;
    uint64_t pthread_self, pthread_detach, dlopen, dlsym, dlerror, munmap;
    uint64_t function; /* 0: `entry` of the library at `path` */
    char name[16];
    char entry[32];
    char message[STUB_MESSAGE_SIZE];
    char path[STUB_PATH_SIZE];
    char settings[STUB_SETTINGS_SIZE];
    uint32_t wants; /* STUB_WANTS_... */
    uint32_t go;    /* 0: wait */
    char file_name[16];
    uint32_t
        own_tid; /* it has descriptors of its own: its number, in its namespace; 0: it shares */
    uint32_t unused;
};

struct stub_frame {
    uint64_t registers; /* where they lie */
    uint64_t pthread_create;
    uint64_t start; /* stub_thread, in the program */
    uint64_t place, place_size;
    uint64_t mask, old_mask;
    uint64_t id;
    uint64_t is_settled; /* it goes on with restart_syscall (attachmachine.h) */
    struct stub_thread thread;
};

_Static_assert(offsetof(struct stub_thread, pthread_self) == STUB_PTHREAD_SELF, "as stub_*.S");
_Static_assert(offsetof(struct stub_thread, function) == STUB_FUNCTION, "as stub_*.S");
_Static_assert(offsetof(struct stub_thread, entry) == STUB_ENTRY, "as stub_*.S");
_Static_assert(offsetof(struct stub_thread, settings) == STUB_SETTINGS, "as stub_*.S");
_Static_assert(offsetof(struct stub_thread, file) == STUB_FILE, "as stub_*.S");
_Static_assert(offsetof(struct stub_thread, wants) == STUB_WANTS, "as stub_*.S");
_Static_assert(offsetof(struct stub_thread, file_name) == STUB_FILE_NAME, "as stub_*.S");
_Static_assert(offsetof(struct stub_thread, own_tid) == STUB_OWN_TID, "as stub_*.S");
_Static_assert(sizeof(struct stub_thread) == STUB_THREAD_SIZE, "as stub_*.S");
_Static_assert(offsetof(struct stub_frame, is_settled) == STUB_IS_SETTLED, "as stub_*.S");
_Static_assert(offsetof(struct stub_frame, thread) == STUB_DATA, "as stub_*.S");

/* Of whole pages; behind them comes what it is given. */
enum { STUB_THREAD_PAGES = (STUB_THREAD_SIZE + 4095) / 4096 * 4096 };

extern const char stub_begin[], stub_lead[], stub_thread[], stub_end[];
#endif

#endif
