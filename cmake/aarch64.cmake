# Build for aarch64 on another machine. tools/aarch64 puts Debian's libraries
# for it into the folder below; tests run in qemu.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

set(libraries ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64/libraries)
set(CMAKE_FIND_ROOT_PATH ${libraries})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${libraries})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/usr/lib/aarch64-linux-gnu/pkgconfig)

# pkg-config leaves out the usual folders, which are not usual here.
include_directories(SYSTEM ${libraries}/usr/include)
add_link_options(-L${libraries}/usr/lib/aarch64-linux-gnu)

set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${libraries}/usr/lib/aarch64-linux-gnu)
# Python's headers are those of another machine.
set(CMAKE_DISABLE_FIND_PACKAGE_Python ON)
