/* SPDX-License-Identifier: MIT */
/* apilist.h: all endpoints, for routes.c. One line a handler, by the file that it is in. */
#ifndef WEB_SERVER_APILIST_H
#define WEB_SERVER_APILIST_H

#include "web/server/api.h"

int api_session(struct api_call *call, struct error *error); /* apisession.c */
int api_sources(struct api_call *call, struct error *error);
int api_open_source(struct api_call *call, struct error *error);
int api_openapi(struct api_call *call, struct error *error);

int api_summary(struct api_call *call, struct error *error);  /* apisummary.c */
int api_timeline(struct api_call *call, struct error *error); /* apitimeline.c */

int api_marks(struct api_call *call, struct error *error); /* apirows.c */
int api_scopes(struct api_call *call, struct error *error);
int api_threads(struct api_call *call, struct error *error);
int api_foreign(struct api_call *call, struct error *error);
int api_modules(struct api_call *call, struct error *error);
int api_processes(struct api_call *call, struct error *error);

#endif
