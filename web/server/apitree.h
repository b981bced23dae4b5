/* SPDX-License-Identifier: MIT */
/*
 * apitree.h: endpoints of trees. Used by routes.c.
 */
#ifndef WEB_SERVER_APITREE_H
#define WEB_SERVER_APITREE_H

#include "web/server/api.h"

int api_tree(struct api_call *call, struct error *error);
int api_callers(struct api_call *call, struct error *error);
int api_search(struct api_call *call, struct error *error);

#endif
