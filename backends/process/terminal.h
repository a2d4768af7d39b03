/* airlockd's end of a job's terminal. */
#pragma once

#include "backends/api/job_spec.h"

/* Receives the terminal's master over the socket. The fd, which does not block; -EAGAIN: not there
 * yet; another error: there will be none. */
int al_terminal_receive(int sock);

void al_terminal_resize(int master, struct al_terminal_size size);

/* The character that ends the input of a program that reads lines; -1: the program has none. */
int al_terminal_eof_character(int master);
