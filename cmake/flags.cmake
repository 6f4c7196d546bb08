# Compiler flags of everything that is built here.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
# Linux is the only system here: all of its interfaces are welcome. The empty
# value agrees with a file that says #define _GNU_SOURCE itself.
add_compile_definitions(_GNU_SOURCE=)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
endif()
# Debug information costs no speed and makes every report readable.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g3 -fno-omit-frame-pointer")

# No contraction: a fused multiply-add rounds once where the reference rounds
# twice, and results must not depend on which kernel the CPU selects.
add_compile_options(
    -ffp-contract=off
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith)
if(RUEDA_WERROR)
    add_compile_options(-Werror)
endif()

# Two builds of a wheel are the same, whatever their folders are called.
if(SKBUILD)
    add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=rueda)
endif()

if(RUEDA_SANITIZE)
    add_compile_options(-fsanitize=${RUEDA_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${RUEDA_SANITIZE})
endif()
if(RUEDA_COVERAGE)
    # Atomic counters: the tests run several threads.
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()
