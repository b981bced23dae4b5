/* SPDX-License-Identifier: MIT */
/*
 * recordthin.h: where more events come than can be taken, fewer are asked for (--on-lag thin): one
 * allocation in so many bytes, chosen by chance, which stands for those that are left out
 * (runtime/record/sampling.h). So nothing is lost, and sums over what is there have the true sums
 * as their mean, however the distance changes meanwhile: each event carries the weight of the
 * distance at which it was picked.
 *
 * The distance is doubled when half of the room is taken, and then with each eighth of what room is
 * left, so that the room does not end as long as what comes can be thinned. The program's threads
 * do so for its buffers (runtime/record/recorder.c); here it is done where only so much of the file
 * may wait to be sent, and where no buffer is left. It is halved while three quarters of both are
 * free, down to what was chosen.
 *
 * Called by collect/recordevents, from one thread at a time.
 */
#ifndef COLLECT_RECORDTHIN_H
#define COLLECT_RECORDTHIN_H

#include "collect/drain.h"
#include "collect/recordfile.h"

/* How much room is left, of RECORDTHIN_WHOLE. */
enum { RECORDTHIN_WHOLE = 1 << 20 };
struct recordthin_room {
    uint32_t left;
    uint32_t left_then; /* when it last asked for fewer; RECORDTHIN_WHOLE: it did not */
};

struct recordthin {
    struct memtrace_recording *recording; /* in the region; NULL: nothing is thinned */
    struct recordthin_room queue;
    uint32_t buffers_left;
    unsigned shift;                /* as it was seen last */
    uint64_t looked_ns, dry_ns;    /* CLOCK_MONOTONIC */
    uint64_t asked_ns, changed_ns; /* the same */
    uint64_t seen_ns;              /* of the program's clock, at the last look */
    uint64_t ended_ns;             /* of the same; 0: it runs */
    struct memtrace_thinned open;  /* not in the file yet; distance 0: there is none */
};

/* Goes on with a recording whose last block of events, or of this kind, ends at this time. */
void recordthin_open(struct recordthin *thin, struct memtrace_recording *recording,
                     uint64_t written_ns);

/* Often, also while nothing is written. queued: bytes of the file that wait, of at most so many; 0:
 * any. time_ns: of the program's clock. */
void recordthin_look(struct recordthin *thin, const struct drain *drain, uint64_t queued,
                     uint64_t most, uint64_t time_ns);

/* The program is gone: what it left in the buffers is not thinned any more. */
void recordthin_end(struct recordthin *thin, uint64_t time_ns);

/* Says in the file since when it is thinned, now and then. 0 or -1. */
int recordthin_write(struct recordthin *thin, struct recordfile *file, uint64_t time_ns,
                     struct error *error);

/* So much is left now: whether fewer are to be asked for. */
bool recordthin_asks(struct recordthin_room *room, uint32_t left);

#endif
