# SPDX-License-Identifier: MIT
# memtrace_instrument(target ...): comes with the package and with add_subdirectory.
