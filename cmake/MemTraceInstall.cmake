# SPDX-License-Identifier: MIT
# Install rules, the CMake package, pkg-config, .deb and .tar.gz; included by the root only.
if(MEMTRACE_AGENT)
    include(cmake/MemTraceInstallAgent.cmake)
    return()
endif()
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/MemTrace")
set(targets memtrace_headers)
get_property(variants GLOBAL PROPERTY MEMTRACE_VARIANTS)
foreach(target memtrace_runtime memtrace_command ${variants})
    if(TARGET ${target})
        list(APPEND targets ${target})
    endif()
endforeach()
install(TARGETS ${targets} EXPORT MemTraceTargets)
install(EXPORT MemTraceTargets NAMESPACE MemTrace:: DESTINATION "${package_dir}")

configure_package_config_file(
    cmake/MemTraceConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/MemTraceConfig.cmake"
    INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/cmake/MemTraceVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_file(cmake/MemTraceConfigVersion.cmake.in "${PROJECT_BINARY_DIR}/cmake/MemTraceConfigVersion.cmake" @ONLY)
set(modules MemTraceAllocators MemTraceInstrument MemTraceLibc MemTraceInstrumentAll MemTraceMachine MemTracePass MemTraceProject)
list(TRANSFORM modules REPLACE "(.+)" "cmake/\\1.cmake")
install(FILES ${modules} "${PROJECT_BINARY_DIR}/cmake/MemTraceConfig.cmake"
              "${PROJECT_BINARY_DIR}/cmake/MemTraceConfigVersion.cmake"
              "${PROJECT_BINARY_DIR}/cmake/MemTraceVersion.cmake"
        DESTINATION "${package_dir}")

# The build folder is laid out as when installed: it has the package, too.
function(memtrace_package_of_build)
    set(CMAKE_INSTALL_LIBDIR lib)
    set(folder "${MEMTRACE_LIB_OUTPUT}/cmake/MemTrace")
    configure_package_config_file(
        cmake/MemTraceConfig.cmake.in "${folder}/MemTraceConfig.cmake"
        INSTALL_PREFIX "${PROJECT_BINARY_DIR}" INSTALL_DESTINATION lib/cmake/MemTrace
        PATH_VARS CMAKE_INSTALL_LIBDIR)
    foreach(file IN LISTS modules ITEMS "${PROJECT_BINARY_DIR}/cmake/MemTraceConfigVersion.cmake"
                            "${PROJECT_BINARY_DIR}/cmake/MemTraceVersion.cmake")
        get_filename_component(name "${file}" NAME)
        configure_file("${file}" "${folder}/${name}" COPYONLY)
    endforeach()
    export(EXPORT MemTraceTargets NAMESPACE MemTrace:: FILE "${folder}/MemTraceTargets.cmake")
endfunction()
if(PROJECT_IS_TOP_LEVEL)
    memtrace_package_of_build()
endif()

file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/memtrace.pc.in "${PROJECT_BINARY_DIR}/cmake/memtrace.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cmake/memtrace.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES include/memtrace/memtrace.h include/memtrace/expect.h include/memtrace/expect_gtest.h
              include/memtrace/expect_catch2.h include/memtrace/format.h
              "${PROJECT_BINARY_DIR}/include/memtrace/version.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/memtrace")

set(doc_dir "${CMAKE_INSTALL_DATAROOTDIR}/doc/memtrace")
file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md")
install(FILES README.md CONTRIBUTING.md CHANGELOG.md LICENSE DESTINATION "${doc_dir}")
install(FILES web/ui/dist/NOTICE.txt DESTINATION "${doc_dir}" RENAME NOTICE)
install(FILES ${pages} DESTINATION "${doc_dir}/docs")
install(DIRECTORY docs/pictures DESTINATION "${doc_dir}/docs")
install(DIRECTORY examples DESTINATION "${doc_dir}")
install(FILES docs/memtrace.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
include(cmake/MemTraceInstallCompletion.cmake)

# gdb's commands. gdb looks for them by the library's own path, below its own data folder: installed
# into /usr (the package) they are found, elsewhere `source` finds them (docs/gdb.md).
install(FILES cli/gdb/memtrace-gdb.py DESTINATION "${CMAKE_INSTALL_DATADIR}/memtrace")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    install(FILES cli/gdb/memtrace-gdb.py
            DESTINATION "${CMAKE_INSTALL_DATADIR}/gdb/auto-load/usr/${CMAKE_INSTALL_LIBDIR}"
            RENAME "libmemtrace.so.${PROJECT_VERSION}-gdb.py")
endif()

if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()
set(CPACK_PACKAGE_NAME memtrace)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "memory profiler: which code owns every byte")
set(CPACK_PACKAGE_DESCRIPTION
    "Profiles the heap of native programs, built with it or prebuilt: exact counts by call path,
 live, leaked and at the maximum, at a cost low enough to leave on.")
set(CPACK_STRIP_FILES OFF)
include(cmake/MemTracePackage.cmake)
