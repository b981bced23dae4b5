/* SPDX-License-Identifier: MIT */
/*
 * assets.h: the scripts and style sheets of this folder, and web/ui/saved/page.html, as text;
 * embed.cmake makes a .c of each when it is built. None but the page has "</script", "</style" or
 * "]]>" in it.
 *
 * Used inside analyze/export.
 */
#ifndef ANALYZE_EXPORT_HTML_ASSETS_H
#define ANALYZE_EXPORT_HTML_ASSETS_H

extern const char asset_flamegraph_css[];
extern const char asset_flamegraph_js[];

#endif
