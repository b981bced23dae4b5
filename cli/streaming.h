/* SPDX-License-Identifier: MIT */
/*
 * streaming.h: `record --to`: the files of a recording are sent while it goes on; `--listen`:
 * others come and take them.
 *
 * Called by cli/run, cli/attach and cli/outside. Each file has a sender, a process of its own
 * (`memtrace sender`), so that neither the network nor the recorder's end can harm the other side:
 * the file is all that they share. A sender that was killed is started again; one whose recorder
 * was killed goes on. So does the one process that waits for others (`memtrace offerer`), for all
 * processes of a run; its listening socket stays with the recorder, too.
 */
#ifndef CLI_STREAMING_H
#define CLI_STREAMING_H

#include "cli/variables.h"

#ifdef MEMTRACE_STREAM
#include "stream/channel.h"

/* Before the program starts: whether it can be done, which ends the command if not, and which files
 * there will be. */
void streaming_begin(struct variables *variables);
/* Starts the senders that are due. */
void streaming_tick(void);
/* The files are whole: waits until all are sent, or for as long as it may take, or until Ctrl-C. */
void streaming_end(void);

/* Also of `memtrace send` and `memtrace gather`. The token in a file, of the job; NULL or "": none.
 */
const struct token *streaming_token(const char *file);
/* Host and port of an address, which `what` names in messages; is_peer: of whom to connect to. */
uint16_t streaming_address(const char *command, const char *what, const char *text, bool is_peer,
                           char host[CHANNEL_HOST]);
/* From here on Ctrl-C and lost connections end calls that wait, and no more. */
void streaming_mind_stop(void);
#else
static inline void streaming_begin(struct variables *variables) {
    (void)variables;
}
static inline void streaming_tick(void) {
}
static inline void streaming_end(void) {
}
#endif

#endif
