/* SPDX-License-Identifier: MIT */
/*
 * quantity.h: numbers, sizes and times as people write them.
 *
 * Called wherever a question or an option is read. Each returns 0, or -1 where the text (NULL, too)
 * is not wholly such a number, or too large. Any thread.
 */
#ifndef ASK_QUANTITY_H
#define ASK_QUANTITY_H

#include <stdint.h>

int quantity_u64(const char *text, uint64_t *value);     /* decimal */
int quantity_bytes(const char *text, uint64_t *bytes);   /* 64M: suffix K M G T, binary */
int quantity_duration(const char *text, uint64_t *ns);   /* 30s: ns us ms s m h; none: seconds */
int quantity_percent(const char *text, double *percent); /* 0.5 or 0.5%: 0..100 */

#endif
