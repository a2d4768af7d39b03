/*
 * One structured line a record on stderr: `2026-11-29T20:01:02.345Z level=info msg="..."
 * key=value`. Only mains and handlers log; libraries return errors. Thread-safe: a record is one
 * write(2). The text is escaped (quotes, backslash, control bytes), so that no outside byte can
 * forge a line. Never log a secret.
 */
#pragma once

enum al_log_level {
    AL_LOG_DEBUG,
    AL_LOG_INFO,
    AL_LOG_WARN,
    AL_LOG_ERROR,
};

/* Names the process in each line (`proc=launcher`); call once before any thread. The string is
 * borrowed. */
void al_log_init(const char *proc, enum al_log_level least);

void al_log(enum al_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define al_log_debug(...) al_log(AL_LOG_DEBUG, __VA_ARGS__)
#define al_log_info(...)  al_log(AL_LOG_INFO, __VA_ARGS__)
#define al_log_warn(...)  al_log(AL_LOG_WARN, __VA_ARGS__)
#define al_log_error(...) al_log(AL_LOG_ERROR, __VA_ARGS__)
