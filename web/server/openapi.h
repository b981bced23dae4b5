/* SPDX-License-Identifier: MIT */
/* openapi.h: the document that describes the endpoints. Called by `memtrace openapi`, which writes
 * web/openapi.json, and as an endpoint itself. */
#ifndef WEB_SERVER_OPENAPI_H
#define WEB_SERVER_OPENAPI_H

#include "analyze/rows/jsonwriter.h"

void openapi_write(struct jsonwriter *json);

#endif
