/* SPDX-License-Identifier: MIT */
/* apicosts.h: endpoints of functions and call paths. Used by routes.c. */
#ifndef WEB_SERVER_APICOSTS_H
#define WEB_SERVER_APICOSTS_H

#include "web/server/api.h"

int api_functions(struct api_call *call, struct error *error);
int api_paths(struct api_call *call, struct error *error);
int api_path(struct api_call *call, struct error *error);

#endif
