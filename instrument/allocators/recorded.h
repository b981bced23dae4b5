/* SPDX-License-Identifier: MIT */
/*
 * recorded.h: what a compiler pass has found of functions that allocate, written into the object,
 * for `memtrace flags --list-allocators` (collect/allocators/allocrecorded.h has the form). It lies
 * in a section that no program loads. C++17.
 */
#ifndef INSTRUMENT_ALLOCATORS_RECORDED_H
#define INSTRUMENT_ALLOCATORS_RECORDED_H

#include <string>

/* Where a function gets its memory, as far as the unit shows: MALLOC: from malloc or its kin, so
 * that MemTrace sees it anyway. UNKNOWN: it calls what is not known here. */
enum class memory_source { OWN, MALLOC, UNKNOWN };

/* Of a function and all that it calls. */
struct memory_origin {
    memory_source kind = memory_source::OWN;
    std::string callee; /* of which that is, unless it is OWN */

    void add(memory_source other, const std::string &by);
};

/* Of a function outside the unit, which is known to call nothing that allocates or not. */
memory_source recorded_source(const std::string &symbol, bool never_allocates);

/* A function reports, as a specification says ("auto": its attributes). */
void recorded_found(const std::string &specification, const std::string &symbol,
                    const std::string &place);

/* A function has attributes that say it allocates. `specification`: what they come to; empty: they
 * tell no size. */
void recorded_proposal(const std::string &symbol, const std::string &place,
                       const std::string &specification, const memory_origin &origin);

/* The unit's record as text for the assembler, with all specifications; empty: nothing is to be
 * said. What was recorded is forgotten. */
std::string recorded_assembly();

#endif
