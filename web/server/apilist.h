/* SPDX-License-Identifier: MIT */
/* apilist.h: all endpoints, for routes.c: one line a handler, by the file that it is in; and what a
 * saved page (onefile.c) and the dispatcher ask of them besides. */
#ifndef WEB_SERVER_APILIST_H
#define WEB_SERVER_APILIST_H

#include "web/server/hub.h"

void api_session(struct api_call *call); /* apisession.c */
/* A source as answers tell of it: an element of an array. */
void apisession_put_source(struct jsonwriter *json, const struct hub_status *status);
void api_sources(struct api_call *call);
void api_open_source(struct api_call *call);

void api_openapi(struct api_call *call); /* openapi.c */

void api_command_of(struct api_call *call); /* apicommand.c */
void api_budget(struct api_call *call);

void api_summary(struct api_call *call);  /* apisummary.c */
void api_timeline(struct api_call *call); /* apitimeline.c */
/* Whether these series, as the parameter has them, take a pass over all blocks. */
bool apitimeline_is_pass(const char *series);

void api_marks(struct api_call *call); /* apirows.c */
void api_scopes(struct api_call *call);
void api_threads(struct api_call *call);
void api_foreign(struct api_call *call);
void api_modules(struct api_call *call);
void api_processes(struct api_call *call);
void api_suppressed(struct api_call *call);
void api_running(struct api_call *call);

void api_tree(struct api_call *call); /* apitree.c */
void api_callers(struct api_call *call);
void api_search(struct api_call *call);

void api_functions(struct api_call *call); /* apicosts.c */
void api_paths(struct api_call *call);
void api_path(struct api_call *call);
/* The columns that call paths have in tables: CONTEXT_COLUMNS, with the headings of these; and the
 * places of those that are shown. */
enum { APIPATHS_SHOWN = 15 };
extern const unsigned char apipaths_shown[APIPATHS_SHOWN];
void apipaths_columns(struct table_column *columns);

void api_files(struct api_call *call); /* apisource.c */
void api_file(struct api_call *call);
void api_file_text(struct api_call *call);

void api_findings(struct api_call *call); /* apifindings.c */

void api_blocks(struct api_call *call); /* apiblocks.c */
void api_block(struct api_call *call);
void api_block_at(struct api_call *call);

void api_lifetimes(struct api_call *call); /* apilifetimes.c */
void api_sizes(struct api_call *call);

void api_heap(struct api_call *call); /* apiheap.c */
void api_heap_history(struct api_call *call);
void api_heap_pages(struct api_call *call);
void api_heap_holes(struct api_call *call);
void api_heap_pins(struct api_call *call);
void api_heap_slack(struct api_call *call);
void api_heap_regions(struct api_call *call);

void api_mappings(struct api_call *call); /* apimappings.c */
void api_mapping(struct api_call *call);

void api_schema(struct api_call *call); /* apiquery.c */
void api_query(struct api_call *call);

void api_export(struct api_call *call); /* apiexport.c */

#endif
