/*
 * Any bytes as what a collector sends; the first byte says in which pieces they come. What is taken
 * keeps every bound, is the same for every way to cut it, and is what its frames say.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/process/artifact_reader.h"
#include "tests/fuzz/fuzz.h"

#define BYTES_MAX 5000

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int read_in_pieces(const uint8_t *data, size_t len, size_t piece, struct al_artifacts *to)
{
    struct al_artifact_reader r;
    int rc = 0;
    al_artifact_reader_init(&r, to, BYTES_MAX);
    for (size_t at = 0; at < len && rc == 0; at += piece) {
        rc = al_artifact_reader_feed(&r, data + at, len - at < piece ? len - at : piece);
    }
    al_artifact_reader_finish(&r);
    return rc;
}

static void require_bounds(const struct al_artifacts *artifacts)
{
    require(artifacts->n <= AL_ARTIFACTS_MAX && al_artifacts_bytes(artifacts) <= BYTES_MAX);
    for (size_t i = 0; i < artifacts->n; i++) {
        const struct al_artifact *a = &artifacts->items[i];
        require(al_artifact_path_is_valid(a->path, strlen(a->path)));
        require(a->path[0] != '/' && !strstr(a->path, "//"));
        require((a->mode & ~0777u) == 0);
        require(i == 0 || strcmp(a[-1].path, a->path) < 0);
    }
}

static void require_same(const struct al_artifacts *x, const struct al_artifacts *y)
{
    require(x->n == y->n && x->omitted == y->omitted);
    for (size_t i = 0; i < x->n; i++) {
        const struct al_artifact *a = &x->items[i];
        const struct al_artifact *b = &y->items[i];
        require(strcmp(a->path, b->path) == 0 && a->len == b->len && a->mode == b->mode);
        require(a->truncated == b->truncated);
        require(a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct al_artifacts whole = {.n = 0}, pieces = {.n = 0};
    size_t piece = len > 0 ? (size_t)data[0] + 1 : 1;
    data += len > 0;
    len -= len > 0;
    int rc = read_in_pieces(data, len, len + 1, &whole);
    require(rc == 0 || rc == -EBADMSG);
    require(read_in_pieces(data, len, piece, &pieces) == rc);
    require_bounds(&whole);
    require_same(&whole, &pieces);
    al_artifacts_finish(&whole);
    al_artifacts_finish(&pieces);
    return 0;
}
