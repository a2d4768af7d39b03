/* The caller of a test's job: a sink that keeps everything, and a thread that does what the test's
 * plan says. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "tests/support/runner.h"

#define PERIOD    251 /* prime: a piece that is lost, doubled or moved shows */
#define FULL_MS   300 /* stdin that had no room for so long is full */
#define FILL_MAX  ((size_t)16 << 20)
#define PIECE_MAX ((size_t)64 << 10)

struct caller {
    struct al_sink sink; /* first: append casts back */
    struct al_ctl *ctl;
    const struct al_test_caller *plan;
    struct al_test_run *run;
    pthread_mutex_t lock; /* guards what follows, and the run's output */
    pthread_cond_t changed;
    bool started, output, ended, stdin_room;
    size_t room;
    size_t seen; /* bytes of stdout */
};

uint8_t al_test_byte(size_t at)
{
    return (uint8_t)(at % PERIOD);
}

static size_t append(struct al_sink *sink, enum al_channel channel, const uint8_t *data, size_t n)
{
    struct caller *c = (struct caller *)sink;
    pthread_mutex_lock(&c->lock);
    size_t take = n < c->room ? n : c->room;
    c->room -= take;
    c->output = true;
    if (al_buf_append(&c->run->out[channel], data, take) < 0) {
        al_test_fail("sink", "more output than a test may keep");
    }
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return take;
}

static void set(struct caller *c, bool *flag)
{
    pthread_mutex_lock(&c->lock);
    *flag = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void started(struct al_sink *sink)
{
    struct caller *c = (struct caller *)sink;
    c->run->started++;
    set(c, &c->started);
}

static void stdin_has_room(void *arg)
{
    struct caller *c = arg;
    set(c, &c->stdin_room);
}

/* Waits until the flag is set or the job has ended; false then. */
static bool wait_for(struct caller *c, const bool *flag)
{
    pthread_mutex_lock(&c->lock);
    while (!*flag && !c->ended) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    bool is_set = *flag;
    pthread_mutex_unlock(&c->lock);
    return is_set;
}

static void sleep_ms(int64_t ms)
{
    usleep((useconds_t)(ms * 1000));
}

static void meet(struct al_test_meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->come++;
    pthread_cond_broadcast(&m->changed);
    while (m->come < m->expected) {
        pthread_cond_wait(&m->changed, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
}

/* --- steps --- */

/* With the lock held. */
static bool find(struct caller *c, const struct al_test_step *step)
{
    const struct al_buf *out = &c->run->out[AL_STDOUT];
    size_t left = out->len - c->seen;
    const uint8_t *from = left > 0 ? out->data + c->seen : NULL;
    const uint8_t *at = from ? memmem(from, left, step->text, step->n) : NULL;
    if (at) {
        c->seen = (size_t)(at - out->data) + step->n;
    }
    return at != NULL;
}

static bool see(struct caller *c, const struct al_test_step *step)
{
    bool found;
    pthread_mutex_lock(&c->lock);
    while (!(found = find(c, step)) && !c->ended) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* False when there was none for so long (-1: for ever), or the job has ended. */
static bool wait_for_stdin_room(struct caller *c, int64_t ms)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000 % 1000000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&c->lock);
    while (!c->stdin_room && !c->ended && rc == 0) {
        rc = ms < 0 ? pthread_cond_wait(&c->changed, &c->lock)
                    : pthread_cond_timedwait(&c->changed, &c->lock, &until);
    }
    bool room = c->stdin_room;
    c->stdin_room = false;
    pthread_mutex_unlock(&c->lock);
    return room;
}

static bool type(struct caller *c, const struct al_test_step *step)
{
    size_t n = 0;
    while ((n += al_ctl_stdin_push(c->ctl, (const uint8_t *)step->text + n, step->n - n)) < step->n)
    {
        if (!wait_for_stdin_room(c, -1)) {
            return false;
        }
    }
    return true;
}

/* So many bytes at most, or fewer when there is no room for so long. */
static bool push(struct caller *c, size_t n, int64_t patience_ms)
{
    uint8_t piece[PIECE_MAX];
    size_t *pushed = &c->run->pushed;
    size_t end = *pushed + n;
    while (*pushed < end) {
        size_t len = end - *pushed < sizeof piece ? end - *pushed : sizeof piece;
        for (size_t i = 0; i < len; i++) {
            piece[i] = al_test_byte(*pushed + i);
        }
        size_t taken = al_ctl_stdin_push(c->ctl, piece, len);
        *pushed += taken;
        if (taken < len && !wait_for_stdin_room(c, patience_ms)) {
            return false;
        }
    }
    return true;
}

/* False: the job has ended. */
static bool take_step(struct caller *c, const struct al_test_step *step)
{
    switch (step->what) {
    case AL_DO_SEE:
        return see(c, step);
    case AL_DO_TYPE:
        return type(c, step);
    case AL_DO_PUSH:
        return push(c, step->n, -1);
    case AL_DO_FILL:
        (void)push(c, FILL_MAX, FULL_MS);
        break;
    case AL_DO_EOF:
        al_ctl_stdin_eof(c->ctl);
        break;
    case AL_DO_SIGNAL:
        (void)al_ctl_signal(c->ctl, (int)step->n);
        break;
    case AL_DO_RESIZE:
        al_ctl_resize(c->ctl, (struct al_terminal_size){(uint16_t)step->n, step->cols});
        break;
    case AL_DO_CANCEL:
        al_ctl_cancel(c->ctl);
        break;
    case AL_DO_NOTHING:
        break;
    }
    return true;
}

static void take_steps(struct caller *c)
{
    const struct al_test_step *step = c->plan->steps;
    while (step && step->what != AL_DO_NOTHING && take_step(c, step)) {
        step++;
    }
}

/* --- the plan --- */

static void *play(void *arg)
{
    struct caller *c = arg;
    const struct al_test_caller *plan = c->plan;
    if (plan->meeting) {
        wait_for(c, &c->output);
        meet(plan->meeting);
    }
    if (!wait_for(c, &c->started)) {
        return NULL;
    }
    if (plan->stdin_text) {
        al_ctl_stdin_push(c->ctl, (const uint8_t *)plan->stdin_text, strlen(plan->stdin_text));
    }
    if ((plan->cancel_on_output || plan->signal_on_output) && !wait_for(c, &c->output)) {
        return NULL;
    }
    if (plan->signal_on_output) {
        al_ctl_signal(c->ctl, plan->signal_on_output);
    }
    if (plan->room_after_ms) {
        sleep_ms(plan->room_after_ms);
        pthread_mutex_lock(&c->lock);
        c->room = SIZE_MAX;
        pthread_mutex_unlock(&c->lock);
        al_ctl_room(c->ctl);
    }
    if (plan->cancel_after_ms) {
        sleep_ms(plan->cancel_after_ms);
    }
    if (plan->cancel_after_ms || plan->cancel_on_output) {
        al_ctl_cancel(c->ctl);
    }
    take_steps(c);
    return NULL;
}

static void terminate_output(struct al_test_run *run)
{
    for (size_t i = 0; i < 2; i++) { /* for asserts on text */
        uint8_t *end = al_buf_reserve(&run->out[i], 1);
        if (end) {
            *end = '\0';
        }
    }
}

void al_test_run(struct al_backend *backend, const struct al_job_spec *spec,
                 const struct al_test_caller *plan, struct al_test_run *ret)
{
    static const struct al_sink_ops ops = {.append = append, .started = started};
    static const struct al_test_caller none;
    *ret = (struct al_test_run){0};
    al_result_init(&ret->result);
    al_buf_init(&ret->out[0], 64 << 20);
    al_buf_init(&ret->out[1], 64 << 20);
    struct caller c = {.sink.ops = &ops,
                       .ctl = al_ctl_create(),
                       .plan = plan ? plan : &none,
                       .run = ret,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    c.room = c.plan->sink_room ? c.plan->sink_room : SIZE_MAX;
    pthread_t thread;
    if (!c.ctl || pthread_create(&thread, NULL, play, &c) != 0) {
        al_test_fail("caller", "cannot start");
    }
    al_ctl_on_stdin_room(c.ctl, stdin_has_room, &c);
    if (c.plan->early_signal) {
        (void)al_ctl_signal(c.ctl, c.plan->early_signal);
    }
    int64_t start_ms = al_now_ms();
    ret->rc = al_backend_run(backend, spec, c.ctl, &c.sink, &ret->result, &ret->err);
    ret->took_ms = al_now_ms() - start_ms;
    set(&c, &c.ended);
    pthread_join(thread, NULL);
    al_ctl_destroy(c.ctl);
    terminate_output(ret);
}

void al_test_run_finish(struct al_test_run *run)
{
    al_result_finish(&run->result);
    al_buf_finish(&run->out[0]);
    al_buf_finish(&run->out[1]);
}
