/* SPDX-License-Identifier: MIT */
/* apilist.h: all endpoints, for routes.c. One line a handler, by the file that it is in. */
#ifndef WEB_SERVER_APILIST_H
#define WEB_SERVER_APILIST_H

#include "web/server/api.h"

int api_session(struct api_call *call, struct error *error); /* apisession.c */
int api_sources(struct api_call *call, struct error *error);
int api_open_source(struct api_call *call, struct error *error);

int api_openapi(struct api_call *call, struct error *error); /* openapi.c */

int api_command_of(struct api_call *call, struct error *error); /* apicommand.c */
int api_budget(struct api_call *call, struct error *error);

int api_summary(struct api_call *call, struct error *error);  /* apisummary.c */
int api_timeline(struct api_call *call, struct error *error); /* apitimeline.c */
/* Whether these series, as the parameter has them, take a pass over all blocks. */
bool apitimeline_is_pass(const char *series);

int api_marks(struct api_call *call, struct error *error); /* apirows.c */
int api_scopes(struct api_call *call, struct error *error);
int api_threads(struct api_call *call, struct error *error);
int api_foreign(struct api_call *call, struct error *error);
int api_modules(struct api_call *call, struct error *error);
int api_processes(struct api_call *call, struct error *error);
int api_suppressed(struct api_call *call, struct error *error);

int api_running(struct api_call *call, struct error *error); /* apirunning.c */

int api_tree(struct api_call *call, struct error *error); /* apitree.c */
int api_callers(struct api_call *call, struct error *error);
int api_search(struct api_call *call, struct error *error);

int api_functions(struct api_call *call, struct error *error); /* apicosts.c */
int api_paths(struct api_call *call, struct error *error);
int api_path(struct api_call *call, struct error *error);

int api_files(struct api_call *call, struct error *error); /* apisource.c */
int api_file(struct api_call *call, struct error *error);
int api_file_text(struct api_call *call, struct error *error);

int api_findings(struct api_call *call, struct error *error); /* apifindings.c */

int api_blocks(struct api_call *call, struct error *error); /* apiblocks.c */
int api_block(struct api_call *call, struct error *error);
int api_block_at(struct api_call *call, struct error *error);

int api_lifetimes(struct api_call *call, struct error *error); /* apilifetimes.c */
int api_sizes(struct api_call *call, struct error *error);

int api_heap(struct api_call *call, struct error *error); /* apiheap.c */
int api_heap_history(struct api_call *call, struct error *error);
int api_heap_pages(struct api_call *call, struct error *error);
int api_heap_holes(struct api_call *call, struct error *error);
int api_heap_pins(struct api_call *call, struct error *error);
int api_heap_slack(struct api_call *call, struct error *error);
int api_heap_regions(struct api_call *call, struct error *error);

int api_mappings(struct api_call *call, struct error *error); /* apimappings.c */
int api_mapping(struct api_call *call, struct error *error);

int api_schema(struct api_call *call, struct error *error); /* apiquery.c */
int api_query(struct api_call *call, struct error *error);

int api_export(struct api_call *call, struct error *error); /* apiexport.c */

#endif
