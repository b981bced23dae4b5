# SPDX-License-Identifier: MIT
"""The samplers of `benchmarks/run sampling`: ours, and those that are parts of other allocators, each
beside the same allocator without it. All are preloaded. Used by harness.py and measure.py."""

import os

MEAN = 512 << 10
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
JEMALLOC = os.path.join(LIBRARIES, "libjemalloc.so.2")
TCMALLOC = os.path.join(LIBRARIES, "libtcmalloc.so.4")

# Column: what is preloaded (None: our library), and what its environment has.
SAMPLERS = {
    "sampled": (None, {"MEMTRACE_SAMPLE": str(MEAN)}),
    "exact": (None, {}),
    "jemalloc": (JEMALLOC, {}),
    "jemalloc-prof": (JEMALLOC, {"MALLOC_CONF": "prof:true,prof_active:true,lg_prof_sample:19"}),
    "tcmalloc": (TCMALLOC, {}),
    "tcmalloc-sample": (TCMALLOC, {"TCMALLOC_SAMPLE_PARAMETER": str(MEAN)}),
}
# What each is compared with: the same allocator.
BASES = {"sampled": "bare", "exact": "bare", "jemalloc-prof": "jemalloc",
         "tcmalloc-sample": "tcmalloc"}
TITLES = {"bare": "bare", "sampled": "sampled, 512 KiB", "exact": "exact",
          "jemalloc-prof": "jemalloc, prof:true", "tcmalloc-sample": "tcmalloc, sampling"}


def is_here(sampler):
    library = SAMPLERS[sampler][0]
    return library is None or os.path.exists(library)


def environment(sampler, library):
    """What a run has besides. `library`: ours."""
    preloaded, added = SAMPLERS[sampler]
    return {"LD_PRELOAD": preloaded or library, **added}
