/* SPDX-License-Identifier: MIT */
/* apisession.h: a source as answers tell of it. Called by apisession.c, which has it, and
 * onefile.c. */
#ifndef WEB_SERVER_APISESSION_H
#define WEB_SERVER_APISESSION_H

#include "analyze/rows/jsonwriter.h"
#include "web/server/hub.h"

/* As an element of an array. */
void apisession_put_source(struct jsonwriter *json, const struct hub_status *status);

#endif
