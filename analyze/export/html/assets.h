/* SPDX-License-Identifier: MIT */
/*
 * assets.h: the script and the style sheet of this folder as text;
 * embed.cmake makes a .c of each when it is built. None has "</script", "</style" or
 * "]]>" in it.
 *
 * Used inside analyze/export.
 */
#ifndef ANALYZE_EXPORT_HTML_ASSETS_H
#define ANALYZE_EXPORT_HTML_ASSETS_H

extern const char asset_flamegraph_css[];
extern const char asset_flamegraph_js[];

#endif
