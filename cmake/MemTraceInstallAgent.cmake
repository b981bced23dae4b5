# SPDX-License-Identifier: MIT
# What the build for devices (MEMTRACE_TOOLS=agent) installs: the command, the library that it preloads, and their texts.
# No headers, no CMake package: nothing is built on the device.
install(TARGETS memtrace_command)
install(TARGETS memtrace_runtime LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/memtrace")

# They tell of the commands that it has, which the command itself knows best; where it cannot be run the whole page goes.
set(manual docs/memtrace.1)
if(NOT CMAKE_CROSSCOMPILING)
    set(texts "${PROJECT_BINARY_DIR}/texts")
    set(manual "${texts}/memtrace.1")
    add_custom_command(
        OUTPUT "${manual}"
        COMMAND "${PROJECT_SOURCE_DIR}/scripts/generate" "$<TARGET_FILE:memtrace_command>" "${texts}"
        DEPENDS memtrace_command scripts/generate docs/memtrace.1
        VERBATIM)
    add_custom_target(memtrace_agent_texts ALL DEPENDS "${manual}")
endif()
include(cmake/MemTraceInstallCompletion.cmake)
install(FILES "${manual}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")

if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()
set(CPACK_PACKAGE_NAME memtrace-agent)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "memory profiler: what a device needs")
set(CPACK_PACKAGE_DESCRIPTION
    "Profiles and records the heap of native programs, and sends recordings to another machine,
 where the whole of MemTrace reads them.")
set(CPACK_DEBIAN_PACKAGE_CONFLICTS memtrace)
set(CPACK_DEBIAN_PACKAGE_REPLACES memtrace)
set(CPACK_STRIP_FILES ON)
include(cmake/MemTracePackage.cmake)
