/*
 * The user's own terminal while a program has one on the server: raw, so that every key reaches the
 * program, and given back as it was on every way out of the process but SIGKILL. One a process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Standard input becomes raw; no effect where it is no terminal. 0 or -errno. */
int al_terminal_enter(void);

/* As it was before. Any thread, any number of times, and in a signal handler. */
void al_terminal_leave(void);

/* Of standard input or output, whichever is a terminal; both 0 where neither is. */
void al_terminal_size(uint32_t *ret_rows, uint32_t *ret_cols);

/* An fd that is readable when the size has changed (al_terminal_take_change makes it unreadable
 * again). Blocks SIGWINCH: call it before any other thread exists. -1: there will be no news. */
int al_terminal_watch_size(void);
void al_terminal_take_change(int fd);
