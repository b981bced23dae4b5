/* SPDX-License-Identifier: MIT */
/*
 * hotpath.h: how functions are marked that a hundred million events go through.
 *
 * Compilers inline by the size of a function, not by how often it runs: without these words they
 * leave calls between the handful of steps that each event takes, and these calls cost more than
 * the steps. Only for what is done for each event, and for the rare branches of that.
 */
#ifndef ANALYZE_BASE_HOTPATH_H
#define ANALYZE_BASE_HOTPATH_H

/* Done for each event: becomes part of its caller. */
#define HOT_INLINE static inline __attribute__((always_inline))

/* Called from there, but rarely: stays out of line, and its callers expect not to call it. */
#define RARELY_DONE __attribute__((cold, noinline))

#endif
