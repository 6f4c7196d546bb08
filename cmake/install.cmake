# Where things go: the usual places, or inside the Python package for a wheel.

get_property(programs GLOBAL PROPERTY RUEDA_PROGRAMS)

file(GLOB man_pages CONFIGURE_DEPENDS docs/man/*.[1-9])

function(install_man_pages folder)
    foreach(page IN LISTS man_pages)
        string(REGEX REPLACE ".*\\.([1-9])$" "\\1" section ${page})
        install(FILES ${page} DESTINATION ${folder}/man${section})
    endforeach()
endfunction()

# An installed wheel serves C programs, too: all but the programs and the man
# pages has the same places beneath the package as beneath a prefix.
set(bin ${CMAKE_INSTALL_BINDIR})
set(man ${CMAKE_INSTALL_MANDIR})
if(SKBUILD)
    set(bin ${SKBUILD_SCRIPTS_DIR})
    # Beside the programs of an environment, where man(1) looks.
    set(man ${SKBUILD_DATA_DIR}/share/man)
    set(CMAKE_INSTALL_LIBDIR rueda/lib)
    set(CMAKE_INSTALL_INCLUDEDIR rueda/include)

    # What the wheel carries that is not ours, as PEP 770 has it.
    if(RUEDA_STATIC_PROGRAMS)
        configure_file(cmake/sbom.cdx.json.in rueda.cdx.json @ONLY)
        install(FILES ${PROJECT_BINARY_DIR}/rueda.cdx.json
                DESTINATION ${SKBUILD_METADATA_DIR}/sboms)
    endif()
endif()

install(TARGETS rueda_shared EXPORT rueda
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES include/rueda/rueda.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rueda)
if(programs)
    install(TARGETS ${programs} RUNTIME DESTINATION ${bin})
endif()

# Relative to the file itself, so that "cmake --install --prefix" stays true.
file(RELATIVE_PATH pc_to_prefix
     /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/rueda.pc.in rueda.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rueda.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# For find_package(rueda) of CMake: the target rueda::rueda.
set_target_properties(rueda_shared PROPERTIES EXPORT_NAME rueda)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(rueda-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(EXPORT rueda NAMESPACE rueda:: FILE rueda-config.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rueda)
install(FILES ${PROJECT_BINARY_DIR}/rueda-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rueda)

install_man_pages(${man})
