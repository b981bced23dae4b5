# SPDX-License-Identifier: MIT
# embed.cmake: cmake -DFROM=page.js -DTO=page.js.c -DNAME=asset_page_js -P embed.cmake
# Makes a C file of a text.
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
file(WRITE "${TO}" "#include \"analyze/export/html/assets.h\"\nconst char ${NAME}[] = {\n${bytes}0};\n")
