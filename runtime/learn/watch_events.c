/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Event files as TensorBoard reads them. A file is records (TFRecord): the length as 8 bytes, the masked CRC-32C of
 * those, the bytes, and their masked CRC-32C, all little-endian. A record is a protobuf message Event: 1 wall_time
 * (double), 2 step (int64), 3 file_version (string), 5 summary { 1 value { 1 tag, 2 simple_value (float) }},
 * 7 session_log { 1 status }. Few enough fields to be written by hand: the library then needs no protobuf. */
#define _POSIX_C_SOURCE 200809L
#include "watch_own.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };      /* wire types */
enum { EVENT = 400, TAG = 256 };                                /* bytes at most */

typedef struct Message { uint8_t at[EVENT]; size_t bytes; } Message;

static void put(Message *m, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) m->at[m->bytes++] = (uint8_t)(value >> 8 * i);
}

static void put_varint(Message *m, uint64_t value)
{
    for (; value > 127; value >>= 7) put(m, (value & 127) | 128, 1);
    put(m, value, 1);
}

static void put_key(Message *m, int field, int type)
{
    put_varint(m, (uint64_t)(field << 3 | type));
}

static void put_bytes(Message *m, int field, const void *from, size_t bytes)
{
    put_key(m, field, BYTES);
    put_varint(m, bytes);
    memcpy(m->at + m->bytes, from, bytes);
    m->bytes += bytes;
}

/* CRC-32C (Castagnoli), bit by bit: an event has a hundred bytes. */
static uint32_t masked_crc(const uint8_t *at, size_t bytes)
{
    uint32_t crc = 0xffffffff;
    while (bytes--) {
        crc ^= *at++;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static Message event_at(int64_t step)
{
    Message m = { .bytes = 0 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    put_key(&m, 1, FIXED64);
    put(&m, bits, 8);
    put_key(&m, 2, VARINT);
    put_varint(&m, (uint64_t)step);
    return m;
}

static void write_record(FILE *to, const Message *m)
{
    Message frame = { .bytes = 0 };
    put(&frame, m->bytes, 8);
    put(&frame, masked_crc(frame.at, 8), 4);
    fwrite(frame.at, 1, frame.bytes, to);
    fwrite(m->at, 1, m->bytes, to);
    frame.bytes = 0;
    put(&frame, masked_crc(m->at, m->bytes), 4);
    fwrite(frame.at, 1, frame.bytes, to);
}

FILE *watch_events_open(const char *folder)
{
    static const char VERSION[] = "brain.Event:2";
    char host[64] = "";
    if (!watch_make_folder(folder)) return NULL;
    if (gethostname(host, sizeof host - 1) || !*host) strcpy(host, "localhost");
    char *path = watch_format("%s/events.out.tfevents.%lld.%s.%ld", folder, (long long)time(NULL), host,
                              (long)getpid());
    FILE *to = path ? fopen(path, "wb") : NULL;
    free(path);
    if (!to) return NULL;
    Message m = event_at(0);
    put_bytes(&m, 3, VERSION, sizeof VERSION - 1);
    write_record(to, &m);
    return to;
}

void watch_events_scalar(FILE *to, const char *tag, int64_t step, double value)
{
    size_t bytes = strlen(tag);
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    Message v = { .bytes = 0 }, summary = { .bytes = 0 }, event = event_at(step);
    put_bytes(&v, 1, tag, bytes < TAG ? bytes : TAG);
    put_key(&v, 2, FIXED32);
    put(&v, bits, 4);
    put_bytes(&summary, 1, v.at, v.bytes);
    put_bytes(&event, 5, summary.at, summary.bytes);
    write_record(to, &event);
}

void watch_events_restart(FILE *to, int64_t step)
{
    enum { START = 1 };
    Message session = { .bytes = 0 }, event = event_at(step);
    put_key(&session, 1, VARINT);
    put_varint(&session, START);
    put_bytes(&event, 7, session.at, session.bytes);
    write_record(to, &event);
}
