/* SPDX-License-Identifier: MIT */
/*
 * apipaths.h: the columns that call paths have in tables: rows_contexts' and these headings.
 *
 * Called by apicosts.c, which has them, and onefilesums.c.
 */
#ifndef WEB_SERVER_APIPATHS_H
#define WEB_SERVER_APIPATHS_H

#include "analyze/rows/rows.h"

enum { APIPATHS_SHOWN = 15 };
extern const unsigned char apipaths_shown[APIPATHS_SHOWN]; /* places among the columns */

/* CONTEXT_COLUMNS of them. */
void apipaths_columns(struct table_column *columns);

#endif
