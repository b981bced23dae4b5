/* SPDX-License-Identifier: MIT */
/* apisource.h: endpoints of source files. Used by routes.c. */
#ifndef WEB_SERVER_APISOURCE_H
#define WEB_SERVER_APISOURCE_H

#include "web/server/api.h"

int api_files(struct api_call *call, struct error *error);
int api_file(struct api_call *call, struct error *error);
int api_file_text(struct api_call *call, struct error *error);

#endif
