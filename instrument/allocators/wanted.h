/* SPDX-License-Identifier: MIT */
/*
 * wanted.h: which functions are to report what they allocate (ALLOCATORS, docs/allocators.md), and
 * whether what is said of a function's arguments can be: for both compiler passes. C++17.
 */
#ifndef INSTRUMENT_ALLOCATORS_WANTED_H
#define INSTRUMENT_ALLOCATORS_WANTED_H

#include "memtrace/signature.h"

#include <string>
#include <vector>

/* One specification. */
struct wanted {
    std::string text;
    memtrace_allocator_signature signature;
    std::string pool; /* empty, and no heap: the function's own name */
    bool is_certain;  /* it names one function, and is no pattern */

    bool allocates() const {
        return signature.kind < MEMTRACE_ALLOCATOR_FREE;
    }
};

/* What an argument or a result is: FLOATING has no number of its own (docs/allocators.md), and what
 * stands behind an OTHER has none that is certain. */
enum class value_class { NOTHING, NUMBER, POINTER, FLOATING, OTHER };

/* A function as it is declared. */
struct function_shape {
    struct parameter {
        value_class type;
        std::string name;
    };
    std::vector<parameter> parameters;
    value_class result;
};

/* Which of a function's parameters are meant, counted from 0; -1: none. */
struct wanted_places {
    int size = -1, times = -1, align = -1, old_block = -1, pointer = -1;
};

/* Adds a specification, or "auto". False: `why` is one line that says what is wrong. */
bool wanted_add(const std::string &text, std::string &why);

bool wanted_is_empty();

/* Functions are to report that nobody named, but whose attributes say that they allocate, and that
 * get their memory neither from malloc nor from what is not known. */
bool wanted_is_auto();

/* What a function's attributes come to: which of its arguments are sizes, by number, `times` may be
 * 0. With a `size` of 0 they tell none, and the text is empty. */
wanted wanted_proposed(const std::string &symbol, unsigned size, unsigned times);

/* The first specification that names the function, by its linker's name; NULL: none does. */
const wanted *wanted_find(const std::string &symbol);

/* The texts of all, as users wrote them. */
std::vector<std::string> wanted_texts();

/* The name of the pool: a function's own where nothing else was said, cut to its room. */
std::string wanted_pool(const wanted &it, const std::string &symbol);

/* Where the arguments are. False: the function is not as the specification says, `why` is a part of
 * a line: "size=3: it has 2 arguments". */
bool wanted_fits(const wanted &it, const function_shape &shape, wanted_places &places,
                 std::string &why);

/* The data of a struct memtrace_named behind its first two words. */
std::string wanted_data(const wanted &it, const std::string &symbol);

#endif
