/* SPDX-License-Identifier: MIT */
/* runjson.h: writes run.json (docs/runs.md tells what is in it). Called by collect/runfolder. */
#ifndef COLLECT_RUNJSON_H
#define COLLECT_RUNJSON_H

#include "collect/runwriter.h"

/* 0 or -1. */
int runjson_write(const struct runwriter *run, const struct runwriter_exit *how, const char *path,
                  struct error *error);

#endif
