# SPDX-License-Identifier: MIT
# Install rules; included by the root CMakeLists.txt only.
