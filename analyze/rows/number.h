/* SPDX-License-Identifier: MIT */
/*
 * number.h: how numbers are spelled for people, the same in every command.
 *
 * Called by analyze/report, collect and cli. Any thread. Each function writes into the caller's
 * buffer and returns it, so that it can stand in a printf.
 */
#ifndef ANALYZE_ROWS_NUMBER_H
#define ANALYZE_ROWS_NUMBER_H

#include <stdint.h>

struct number {
    char text[64];
};

/* "12.3 MiB", "1.0 KiB", "27 B" */
const char *number_bytes(struct number *buffer, uint64_t bytes);

/* "12,903,424" */
const char *number_count(struct number *buffer, uint64_t count);

/* "1 block", "2,000 blocks", "3 processes": `one` says what is counted, in at most 30 letters. */
const char *number_items(struct number *buffer, uint64_t count, const char *one);

/* "+1.0 KiB", "-27 B", "0 B" */
const char *number_change(struct number *buffer, int64_t bytes);

/* "12.3%", "<0.1%"; "-" where whole is 0 */
const char *number_percent(struct number *buffer, uint64_t part, uint64_t whole);

/* "0 ns", "1.5 s", "250.0 ms", "2 min 5 s", "3 h 10 min" */
const char *number_duration(struct number *buffer, uint64_t ns);

#endif
