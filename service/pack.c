#include "service/pack.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#define MAX_MESSAGE_BYTES ((size_t)INT32_MAX)

/* Below this, copying is cheaper than one more slice. */
#define LONG_BYTES (8u << 10)

#define SLICES_MAX (2 * AL_PACK_EVENTS_MAX + 1)

/* protobuf-c appends to `copied` piece by piece; long output becomes a slice of its own between two
 * parts of it. */
struct packer {
    ProtobufCBuffer base; /* first: protobuf-c hands it back */
    struct al_event *const *events;
    size_t n_events;
    grpc_slice copied;
    size_t len;   /* of what `copied` holds so far */
    size_t start; /* of what is not yet in `slices` */
    grpc_slice slices[SLICES_MAX];
    size_t n_slices;
};

static bool is_long(const struct al_event *event)
{
    return event->bytes.len >= LONG_BYTES;
}

static void flush_copied(struct packer *packer)
{
    if (packer->len > packer->start) {
        packer->slices[packer->n_slices++] =
            grpc_slice_sub(packer->copied, packer->start, packer->len);
        packer->start = packer->len;
    }
}

static void unref_event(void *event)
{
    al_event_unref(event);
}

static bool append_reference(struct packer *packer, size_t len, const uint8_t *data)
{
    for (size_t i = 0; i < packer->n_events; i++) {
        struct al_event *event = packer->events[i];
        if (is_long(event) && data == event->bytes.data) {
            assert(len == event->bytes.len);
            flush_copied(packer);
            packer->slices[packer->n_slices++] = grpc_slice_new_with_user_data(
                event->bytes.data, len, unref_event, al_event_ref(event));
            return true;
        }
    }
    return false;
}

static void append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
    struct packer *packer = (struct packer *)base;
    if (len > 0 && !append_reference(packer, len, data)) {
        assert(packer->len + len <= GRPC_SLICE_LENGTH(packer->copied));
        memcpy(GRPC_SLICE_START_PTR(packer->copied) + packer->len, data, len);
        packer->len += len;
    }
}

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) {
        to[n++] = (uint8_t)(value | 0x80);
    }
    to[n++] = (uint8_t)value;
    return n;
}

/* Tag and length of a field that holds a message of `len` bytes. */
static size_t put_wrapper(uint8_t *to, unsigned field, size_t len)
{
    size_t n = put_varint(to, (uint64_t)field << 3 | 2);
    return n + put_varint(to + n, len);
}

grpc_byte_buffer *al_pack(const ProtobufCMessage *message, unsigned wrapper,
                          struct al_event *const *events, size_t n_events)
{
    assert(n_events <= AL_PACK_EVENTS_MAX);
    uint8_t head[20];
    size_t message_len = protobuf_c_message_get_packed_size(message);
    size_t head_len = wrapper ? put_wrapper(head, wrapper, message_len) : 0;
    if (message_len > MAX_MESSAGE_BYTES - head_len) {
        return NULL;
    }
    size_t copied_len = head_len + message_len;
    for (size_t i = 0; i < n_events; i++) {
        copied_len -= is_long(events[i]) ? events[i]->bytes.len : 0;
    }
    struct packer packer = {
        .base.append = append,
        .events = events,
        .n_events = n_events,
        .copied = grpc_slice_malloc(copied_len),
    };
    append(&packer.base, head_len, head);
    (void)protobuf_c_message_pack_to_buffer(message, &packer.base);
    flush_copied(&packer);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(packer.slices, packer.n_slices);
    for (size_t i = 0; i < packer.n_slices; i++) {
        grpc_slice_unref(packer.slices[i]);
    }
    grpc_slice_unref(packer.copied);
    return buffer;
}

grpc_byte_buffer *al_pack_bytes(const uint8_t *data, size_t len)
{
    if (len > MAX_MESSAGE_BYTES) {
        return NULL;
    }
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)data, len);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

int al_pack_field(struct al_buf *to, unsigned field, const void *data, size_t len)
{
    uint8_t head[20];
    int r = al_buf_append(to, head, put_wrapper(head, field, len));
    return r < 0 ? r : al_buf_append(to, data, len);
}
