#include "client/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "client/output.h"
#include "client/summary.h"

#define FIRST_MS     500
#define STEP_MS      200
#define COLUMNS      80 /* where the terminal does not tell */
#define KIB          1024.0
#define TAKE_AWAY    "\r\033[K"
#define BYTES_PLAIN  1024
#define DIGITS_BELOW 100 /* from here on without decimals */

void al_progress_start(struct al_progress *progress)
{
    const char *term = getenv("TERM");
    progress->is_wanted = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    progress->begun_ms = al_now_ms();
    progress->next_ms = progress->begun_ms + FIRST_MS;
}

void al_progress_note(struct al_progress *progress, const Airlock__V1__StreamResponse *message)
{
    switch (message->event_case) {
    case AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDOUT:
        progress->bytes += message->stdout.len;
        break;
    case AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDERR:
        progress->bytes += message->stderr.len;
        break;
    case AIRLOCK__V1__STREAM_RESPONSE__EVENT_STATUS:
        progress->status = message->status;
        break;
    default:
        break;
    }
}

int64_t al_progress_wait_ms(const struct al_progress *progress)
{
    if (!progress->is_wanted) {
        return -1;
    }
    int64_t left_ms = progress->next_ms - al_now_ms();
    return left_ms > 0 ? left_ms : 0;
}

static void add_bytes(struct al_text *text, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    if (bytes < BYTES_PLAIN) {
        al_text_add(text, "%u B", (unsigned)bytes);
        return;
    }
    double n = (double)bytes / KIB;
    while (n >= KIB && unit + 1 < sizeof units / sizeof *units) {
        n /= KIB;
        unit++;
    }
    al_text_add(text, "%.*f %s", n < DIGITS_BELOW ? 1 : 0, n, units[unit]);
}

static size_t columns(void)
{
    struct winsize size = {0};
    (void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    return size.ws_col > 0 ? size.ws_col : COLUMNS;
}

void al_progress_show(struct al_progress *progress, bool mid_line)
{
    int64_t now_ms = al_now_ms();
    if (!progress->is_wanted || now_ms < progress->next_ms) {
        return;
    }
    progress->next_ms = now_ms + STEP_MS;
    if (mid_line) {
        return;
    }
    struct al_text text = {0};
    bool is_known = progress->status != AIRLOCK__V1__JOB_STATUS__JOB_STATUS_UNSPECIFIED;
    al_text_add(&text, "airlock: %s, %.1f s, ",
                is_known ? al_status_word(progress->status) : "connecting",
                (double)(now_ms - progress->begun_ms) / 1000);
    add_bytes(&text, progress->bytes);
    size_t fits = columns() - 1; /* in the last column some terminals begin a new line */
    if (text.len > fits) {
        text.data[fits] = '\0';
        text.len = fits;
    }
    struct al_text line = {0};
    al_text_add(&line, TAKE_AWAY "%s", text.data ? text.data : "");
    free(text.data);
    (void)al_text_flush(&line, STDERR_FILENO);
    progress->is_shown = true;
}

void al_progress_clear(struct al_progress *progress)
{
    if (progress->is_shown) {
        (void)al_output_write(STDERR_FILENO, TAKE_AWAY, sizeof TAKE_AWAY - 1);
        progress->is_shown = false;
    }
}
