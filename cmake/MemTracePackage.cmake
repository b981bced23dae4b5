# SPDX-License-Identifier: MIT
# .deb and .tar.gz of what is installed (cpack); CPACK_PACKAGE_NAME and its descriptions are set by the includer.
# Without dpkg there is no use for a .deb, and nothing that could tell what it depends on.
find_program(MEMTRACE_DPKG dpkg)
mark_as_advanced(MEMTRACE_DPKG)
set(CPACK_GENERATOR TGZ)
if(MEMTRACE_DPKG)
    set(CPACK_GENERATOR "DEB;TGZ")
endif()
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/MemTracePackageNeeds.cmake")
set(CPACK_PACKAGE_VENDOR MemTrace)
set(CPACK_PACKAGE_CONTACT "MemTrace developers <memtrace@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGE_FILE_NAME "${CPACK_PACKAGE_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_DEB_COMPONENT_INSTALL OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(MEMTRACE_DEBUGINFOD_FOUND)
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libdebuginfod1) # which is loaded when it is needed
endif()
include(CPack)
