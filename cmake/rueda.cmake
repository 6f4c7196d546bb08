# What the CMakeLists.txt of a folder under src/ may call.

# rueda_sources(a.c b.c ...): these files of this folder belong to the library.
function(rueda_sources)
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    target_sources(rueda_objects PRIVATE ${ARGN})
endfunction()

# rueda_isa_source(file.c -mavx2 ...): as rueda_sources, for one file that is
# compiled with flags of its own. Only code that has asked the CPU may call it.
function(rueda_isa_source file)
    rueda_sources(${file})
    set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/${file}
                 TARGET_DIRECTORY rueda_objects
                 APPEND PROPERTY COMPILE_OPTIONS ${ARGN})
endfunction()

# rueda_program(name a.c ...): an installed program that carries the library,
# libsodium too, so that it runs from any place. Debian's libsodium.a is not
# position independent, hence -no-pie. Packages of a system, which has libsodium,
# set RUEDA_STATIC_PROGRAMS=OFF.
function(rueda_program name)
    set(target ${name}_program)
    add_executable(${target} ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
    target_link_libraries(${target} PRIVATE rueda_objects Threads::Threads m)
    if(NOT RUEDA_STATIC_PROGRAMS)
        target_link_libraries(${target} PRIVATE PkgConfig::SODIUM)
    else()
        find_library(RUEDA_SODIUM_STATIC libsodium.a
                     HINTS ${SODIUM_LIBRARY_DIRS} REQUIRED)
        target_link_libraries(${target} PRIVATE ${RUEDA_SODIUM_STATIC})
        target_link_options(${target} PRIVATE -no-pie)
    endif()
    set_property(GLOBAL APPEND PROPERTY RUEDA_PROGRAMS ${target})
endfunction()

# rueda_add_folder(x): add_subdirectory, where the folder is there.
function(rueda_add_folder folder)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
        add_subdirectory(${folder})
    endif()
endfunction()
