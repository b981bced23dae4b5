/* SPDX-License-Identifier: MIT */
/*
 * budget.h: budgets as people write them, for cli/check.c. docs/check.md tells the language:
 *
 *     METRIC <= LIMIT [in|not in function|file|module REGEX]... [in scope NAME | per scope NAME]
 *     growth <= LIMIT of METRIC over FILE [in|not in ...]...
 */
#ifndef CLI_BUDGET_H
#define CLI_BUDGET_H

#include "analyze/report/check.h"

struct budgets {
    struct check_budget *items;
    size_t count, room;
};

/* In a job, to which they belong. Adds what one line says; a line that is empty or a comment says
 * nothing. origin: "file:3", or "" for the command line. folder: where names of files begin; NULL:
 * here. 0, or -1: error says what is wrong, with the origin. */
int budget_add(struct budgets *budgets, const char *line, const char *origin, const char *folder,
               struct error *error);

/* All lines of a file. 0 or -1. */
int budget_read(struct budgets *budgets, const char *path, struct error *error);

#endif
