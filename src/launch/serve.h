/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ruedarun agent`: the agent as a program, started by ssh (--stdio) or by hand
 * on that host (--join).
 */
#ifndef RUEDA_LAUNCH_SERVE_H
#define RUEDA_LAUNCH_SERVE_H

/* The words after "agent". Returns the exit code. */
int rueda_serve_main(int argc, char **argv);

#endif /* RUEDA_LAUNCH_SERVE_H */
