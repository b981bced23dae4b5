# SPDX-License-Identifier: MIT
# embed.cmake: memtrace_embed(LIST PREFIX FILE...) makes a C file of each text and appends it to that list of sources:
# `extern const char PREFIX_page_js[]`. As a script it makes one of them:
# cmake -DFROM=page.js -DTO=page.js.c -DNAME=asset_page_js -P embed.cmake
if(NOT CMAKE_SCRIPT_MODE_FILE)
    function(memtrace_embed list prefix)
        set(script "${PROJECT_SOURCE_DIR}/cmake/embed.cmake")
        foreach(text IN LISTS ARGN)
            get_filename_component(file "${text}" NAME)
            string(MAKE_C_IDENTIFIER "${prefix}_${file}" name)
            set(embedded "${CMAKE_CURRENT_BINARY_DIR}/${file}.c")
            add_custom_command(
                OUTPUT "${embedded}"
                COMMAND "${CMAKE_COMMAND}" "-DFROM=${text}" "-DTO=${embedded}" -DNAME=${name} -P "${script}"
                DEPENDS "${text}" "${script}"
                VERBATIM)
            list(APPEND ${list} "${embedded}")
        endforeach()
        set(${list} "${${list}}" PARENT_SCOPE)
    endfunction()
    return()
endif()

file(READ "${FROM}" text)
foreach(bad IN ITEMS "</script" "</style" "]]>")
    string(FIND "${text}" "${bad}" place)
    if(NOT place EQUAL -1)
        message(FATAL_ERROR "${FROM}: '${bad}' would end what it is put into")
    endif()
endforeach()
file(READ "${FROM}" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${TO}" "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
