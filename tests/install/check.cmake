# Install a build, move the tree, and compile and run a user's program against it, as
# README.md has it. cmake -DBUILD=... -DSOURCE=... -DEXAMPLE=... -DWORK=... -P check.cmake

file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${WORK}/first ${WORK}/prefix)
file(GLOB_RECURSE pc ${WORK}/prefix/rueda.pc)
get_filename_component(folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build
                        -DCMAKE_PREFIX_PATH=${WORK}/prefix -DEXAMPLE=${EXAMPLE}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(program IN ITEMS by_cmake by_pkg_config)
    execute_process(COMMAND ${WORK}/build/${program} OUTPUT_VARIABLE said
                    COMMAND_ERROR_IS_FATAL ANY)
    if(NOT said MATCHES "rank 0 of 1: the sum is 1")
        message(FATAL_ERROR "${program}: ${said}")
    endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
