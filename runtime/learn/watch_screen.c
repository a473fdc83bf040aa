/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A dashboard on a terminal. In: what a learner tells, and keys. Out: plots of training and validation, progress,
 * figures and messages, drawn ten times a second at most; what is wished. ncurses draws.
 * Whatever ends the process, the terminal is given back (watch_hold.c). */
#define _POSIX_C_SOURCE 200809L
#include "watch_own.h"

#ifndef BURN_WATCH_CURSES
int burn_watch_screen(FILE *to, burn_watcher *watcher)
{
    return burn_watch_lines(to, 0, watcher);
}
#else
#include "watch_hold.h"
#include "watch_plot.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 3, LABEL = 10, NAME = 22, COLUMN = 11 };     /* rows; columns of the screen */
enum { PLAIN, TRAIN, VALID, GOOD, BAD };                        /* pairs of colours */
static const double REDRAWN = 0.1, ASKED = 0.02;                /* seconds from one to the next */

typedef struct Screen {
    FILE *to, *from;
    SCREEN *screen;                       /* NULL: the terminal is not taken */
    int utf8, colours;
    char *locale;                         /* the program's own */
    WatchHistory history;
    char *name;
    int64_t epochs;
    burn_progress now;                    /* without its figures */
    int chosen, is_recent, is_asking;
    double drawn, asked;
    char **said;                          /* messages, all of them */
    burn_level *levels;
    int said_count;
    burn_wish wish;
} Screen;

/* ---- the terminal */

static int take_terminal(Screen *s)
{
    if (!watch_hold_modes(fileno(s->from))) return 0;
    s->locale = watch_copy(setlocale(LC_CTYPE, NULL));
    setlocale(LC_CTYPE, "");
    s->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    s->screen = newterm(NULL, s->to, s->from);
    if (!s->screen) return 0;
    set_term(s->screen);
    watch_hold(fileno(s->to));
    cbreak();
    noecho();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    curs_set(0);
    s->colours = watch_colours() && has_colors() && start_color() == OK;
    if (s->colours) {
        use_default_colors();
        init_pair(TRAIN, COLOR_CYAN, -1);
        init_pair(VALID, COLOR_YELLOW, -1);
        init_pair(GOOD, COLOR_GREEN, -1);
        init_pair(BAD, COLOR_RED, -1);
    }
    return 1;
}

static void give_terminal(Screen *s)
{
    if (!s->screen) return;
    endwin();
    delscreen(s->screen);
    s->screen = NULL;
    watch_hold_end();
    if (s->locale) setlocale(LC_CTYPE, s->locale);
}

/* ---- what is drawn */

static attr_t ink(const Screen *s, int pair)
{
    if (s->colours) return (attr_t)COLOR_PAIR(pair);
    return pair == VALID || pair == BAD ? A_BOLD : A_NORMAL;
}

/* Text from a column on, before another; where the next one begins. */
static int put(int row, int from, int to, attr_t attributes, const char *text)
{
    char *part = watch_copy(text);
    int columns = to < COLS ? to - from : COLS - from;
    if (!part || columns <= 0 || row < 0 || row >= LINES) {
        free(part);
        return from;
    }
    int used = watch_cut(part, columns);
    attrset((int)attributes);
    mvaddstr(row, from, part);
    attrset(A_NORMAL);
    free(part);
    return from + used;
}

static void put_bar(int row, int from, int to, double share)
{
    int cells = to - from - 2;
    if (cells < 3) return;
    int full = share > 0 ? (int)(share * cells) : 0;
    put(row, from, to, A_NORMAL, "[");
    for (int i = 0; i < cells; i++) put(row, from + 1 + i, to, A_NORMAL, i < full ? "=" : i == full ? ">" : " ");
    put(row, to - 1, to, A_NORMAL, "]");
}

static void draw_head(const Screen *s)
{
    const burn_progress *p = &s->now;
    char text[200];
    double part = p->batches > 0 ? (double)p->batch / (double)p->batches : 0;
    double all = s->epochs > 0 ? ((double)(p->epoch > 0 ? p->epoch - 1 : 0) +
                                  (p->split == BURN_VALIDATION ? 1 : part)) / (double)s->epochs : 0;
    int at = put(0, 1, COLS, A_BOLD, s->name ? s->name : "");
    snprintf(text, sizeof text, "epoch %lld/%lld  %s %lld/%lld", (long long)p->epoch, (long long)s->epochs,
             watch_split(p->split), (long long)p->batch, (long long)p->batches);
    at = put(0, at + 2, COLS, ink(s, p->split == BURN_VALIDATION ? VALID : TRAIN), text);
    snprintf(text, sizeof text, "%s, %s left", watch_time(p->seconds).text, watch_time(p->seconds_left).text);
    put(0, at + 2, COLS, A_NORMAL, text);
    snprintf(text, sizeof text, "epoch %3.0f %%", 100 * part);
    at = put(1, 1, COLS, A_NORMAL, text) + 1;
    put_bar(1, at, COLS / 2, part);
    snprintf(text, sizeof text, "all %3.0f %%", 100 * all);
    at = put(1, COLS / 2 + 1, COLS, A_NORMAL, text) + 1;
    put_bar(1, at, COLS - 1, all);
}

/* The curve of a name and split, among the first `count`; or NULL. */
static const WatchCurve *find(const Screen *s, const char *name, int split, int count)
{
    for (int i = 0; i < count; i++)
        if ((int)s->history.curves[i]->split == split && !strcmp(s->history.curves[i]->name, name))
            return s->history.curves[i];
    return NULL;
}

/* The curves that stand for figures: each name's first one. */
static int is_first(const Screen *s, int i)
{
    const WatchCurve *c = s->history.curves[i];
    return !find(s, c->name, BURN_TRAINING, i) && !find(s, c->name, BURN_VALIDATION, i);
}

static int figure_count(const Screen *s)
{
    int n = 0;
    for (int i = 0; i < s->history.count; i++) n += is_first(s, i);
    return n;
}

static const char *figure_name(const Screen *s, int number)
{
    int i = 0;
    while (!is_first(s, i) || number-- > 0) i++;
    return s->history.curves[i]->name;
}

/* A figure's curve of a split, or NULL. */
static const WatchCurve *figure(const Screen *s, int number, int split)
{
    return number < figure_count(s) ? find(s, figure_name(s, number), split, s->history.count) : NULL;
}

/* The last batches are plotted: that is wished, and the figure has numbers for batches. */
static int is_recent(const Screen *s)
{
    int64_t batches = 0;
    for (int split = 0; split < PLOT_LAYERS; split++) {
        const WatchCurve *c = figure(s, s->chosen, split);
        batches += c ? c->batches : 0;
    }
    return s->is_recent && batches;
}

/* The points of a curve that are plotted. Caller frees; NULL where there are none. */
static WatchPoint *points_of(const WatchCurve *c, int recent, int64_t *count)
{
    int is_epochs = !recent && (!c->batches || (c->split == BURN_VALIDATION && c->epoch_count > 1));
    int64_t n = is_epochs ? c->epoch_count : !recent ? c->whole_count
              : c->batches < WATCH_RECENT ? c->batches : WATCH_RECENT;
    WatchPoint *points = n > 0 ? malloc((size_t)n * sizeof *points) : NULL;
    if (points && !recent)
        memcpy(points, is_epochs ? c->epochs : c->whole, (size_t)n * sizeof *points);
    else if (points)
        for (int64_t i = 0; i < n; i++)
            points[i] = (WatchPoint){ (double)(i - n), c->recent[(c->batches - n + i) % WATCH_RECENT].y };
    *count = points ? n : 0;
    return points;
}

static void draw_axes(const Screen *s, const Plot *p, int recent, int top)
{
    char text[64];
    for (int row = 0; row < p->rows; row += p->rows > 8 ? (p->rows - 1) / 4 : p->rows > 1 ? p->rows - 1 : 1) {
        double share = p->rows > 1 ? (double)row / (p->rows - 1) : 0;
        snprintf(text, sizeof text, "%9s", watch_number(p->high + (p->low - p->high) * share).text);
        put(top + row, 0, LABEL, A_NORMAL, text);
    }
    for (int row = 0; row < p->rows; row++) put(top + row, LABEL, LABEL + 1, A_NORMAL, s->utf8 ? "\u2502" : "|");
    if (recent) snprintf(text, sizeof text, "%.0f batches ago", -p->from);
    else snprintf(text, sizeof text, "%.3g", p->from);
    put(top + p->rows, LABEL + 1, COLS, A_NORMAL, text);
    snprintf(text, sizeof text, recent ? "now" : "epoch %.3g", p->to);
    put(top + p->rows, COLS - 1 - (int)strlen(text), COLS, A_NORMAL, text);
}

static void draw_plot(const Screen *s, int top, int rows)
{
    WatchPoint *points[PLOT_LAYERS] = { NULL };
    int64_t counts[PLOT_LAYERS] = { 0 };
    int recent = is_recent(s);
    Plot p;
    if (!plot_open(&p, rows, COLS - LABEL - 2)) return;
    p.from = recent ? -1 : 0;
    for (int i = 0; i < PLOT_LAYERS; i++) {
        const WatchCurve *c = figure(s, s->chosen, i);
        points[i] = c ? points_of(c, recent, &counts[i]) : NULL;
        plot_fit(&p, points[i], counts[i]);
        if (!counts[i]) continue;
        if (points[i][0].x < p.from) p.from = points[i][0].x;
        if (points[i][counts[i] - 1].x > p.to) p.to = points[i][counts[i] - 1].x;
    }
    if (isnan(p.low)) put(top + rows / 2, LABEL + 2, COLS, A_DIM, "no numbers yet");
    else draw_axes(s, &p, recent, top);
    for (int i = 0; i < PLOT_LAYERS; i++) {
        plot_line(&p, i, points[i], counts[i]);
        free(points[i]);
    }
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < p.columns; column++) {
            int layer;
            PlotText cell = plot_cell(&p, row, column, s->utf8, &layer);
            if (*cell.text) put(top + row, LABEL + 1 + column, COLS, ink(s, layer ? VALID : TRAIN), cell.text);
        }
    plot_close(&p);
}

static void draw_tabs(const Screen *s, int row)
{
    int at = 1;
    for (int i = 0; i < figure_count(s); i++) {
        at = put(row, at, COLS, i == s->chosen ? A_REVERSE : A_NORMAL, figure_name(s, i)) + 2;
    }
    at = put(row, at + 2, COLS, ink(s, TRAIN), s->utf8 ? "\u2500 train" : ". train");
    at = put(row, at + 2, COLS, ink(s, VALID), s->utf8 ? "\u2500 valid" : "* valid");
    put(row, at + 2, COLS, A_DIM, is_recent(s) ? "recent" : "whole");
}

static void put_number(int row, int from, attr_t attributes, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%*s", COLUMN - 1, isnan(value) ? "-" : watch_number(value).text);
    put(row, from, from + COLUMN, attributes, text);
}

static void draw_figures(const Screen *s, int top, int rows)
{
    static const char *const HEADS[] = { "train now", "mean", "best", "valid now", "mean", "best" };
    for (int i = 0; i < 6; i++) {
        char text[24];
        snprintf(text, sizeof text, "%*s", COLUMN - 1, HEADS[i]);
        put(top, NAME + i * COLUMN, COLS, A_DIM, text);
    }
    for (int i = 0; i < figure_count(s) && i + 1 < rows; i++) {
        put(top + 1 + i, 1, NAME, i == s->chosen ? A_BOLD : A_NORMAL, figure_name(s, i));
        for (int split = 0; split < 2; split++) {
            const WatchCurve *c = figure(s, i, split);
            const WatchPoint *best = c ? watch_curve_best(c) : NULL;
            int at = NAME + split * 3 * COLUMN;
            if (!c) continue;
            put_number(top + 1 + i, at, ink(s, split ? VALID : TRAIN), c->now);
            put_number(top + 1 + i, at + COLUMN, ink(s, split ? VALID : TRAIN), c->mean);
            put_number(top + 1 + i, at + 2 * COLUMN, ink(s, GOOD), best ? best->y : NAN);
        }
    }
}

static void draw_foot(const Screen *s)
{
    int shown = s->said_count < MESSAGES ? s->said_count : MESSAGES;
    for (int i = 0; i < shown; i++) {
        int m = s->said_count - shown + i;
        put(LINES - 1 - shown + i, 1, COLS, s->levels[m] == BURN_NOTE ? A_NORMAL : ink(s, BAD), s->said[m]);
    }
    const char *keys = s->is_asking ? "Stop?  s: save and stop   q: quit, nothing is saved   c: go on"
        : s->wish == BURN_STOP ? "stopping ..." : s->wish == BURN_QUIT ? "quitting ..."
        : s->utf8 ? "\u2190\u2192 1-9: figure   tab: recent, whole   s: save   q: stop"
                  : "<- -> 1-9: figure   tab: recent, whole   s: save   q: stop";
    put(LINES - 1, 1, COLS, s->is_asking ? A_REVERSE : A_DIM, keys);
}

static void draw(Screen *s)
{
    int foot = 1 + (s->said_count < MESSAGES ? s->said_count : MESSAGES), table = 1 + figure_count(s);
    int room = LINES - 4 - foot;          /* head, tabs, the line below the plot */
    if (table > room / 2) table = room / 2;
    erase();
    draw_head(s);
    draw_foot(s);
    if (room - table >= 3 && COLS > LABEL + 10) {
        draw_tabs(s, 2);
        draw_plot(s, 3, room - table);
        draw_figures(s, LINES - foot - table, table);
    }
    refresh();
    s->drawn = watch_clock();
}

/* ---- keys */

static void answer(Screen *s, int key)
{
    s->is_asking = 0;
    if (key == 's' || key == 'y') s->wish = BURN_STOP;
    if (key == 'q') s->wish = BURN_QUIT;
}

static void press(Screen *s, int key)
{
    int n = figure_count(s) ? figure_count(s) : 1;
    if (key == KEY_RESIZE) clear();
    else if (s->is_asking) answer(s, key);
    else if (key == KEY_RIGHT || key == 'l') s->chosen = (s->chosen + 1) % n;
    else if (key == KEY_LEFT || key == 'h') s->chosen = (s->chosen + n - 1) % n;
    else if (key >= '1' && key <= '9' && key - '1' < n) s->chosen = key - '1';
    else if (key == '\t') s->is_recent = !s->is_recent;
    else if (key == 's' && s->wish < BURN_SAVE) s->wish = BURN_SAVE;
    else if (key == 'q') s->is_asking = 1;
}

static burn_wish screen_wish(void *own)
{
    Screen *s = own;
    double now = watch_clock();
    if (s->screen && now - s->asked >= ASKED) {
        int is_changed = 0, key;
        while ((key = getch()) != ERR) {
            press(s, key);
            is_changed = 1;
        }
        if (is_changed) draw(s);
        s->asked = now;
    }
    burn_wish wish = s->wish;
    if (wish == BURN_SAVE) s->wish = BURN_GO_ON;
    return wish;
}

/* ---- what a learner tells */

static void screen_say(void *own, burn_level level, const char *text)
{
    Screen *s = own;
    char **said = realloc(s->said, (size_t)(s->said_count + 1) * sizeof *said);
    if (said) s->said = said;
    burn_level *levels = realloc(s->levels, (size_t)(s->said_count + 1) * sizeof *levels);
    if (levels) s->levels = levels;
    char *copy = said && levels ? watch_copy(text) : NULL;
    if (!copy) return;
    s->said[s->said_count] = copy;
    s->levels[s->said_count++] = level;
    if (s->screen) draw(s);
}

static void screen_begin(void *own, const burn_task *task)
{
    Screen *s = own;
    s->name = watch_copy(task->name);
    s->epochs = task->epochs;
    s->now = (burn_progress){ .epoch = task->resumed_epoch, .seconds_left = NAN };
    if (task->artifacts && task->resumed_epoch > 0)
        watch_history_load(&s->history, task->artifacts, task->resumed_epoch);
    if (take_terminal(s)) draw(s);
}

static void screen_batch(void *own, const burn_progress *p)
{
    Screen *s = own;
    watch_history_batch(&s->history, p);
    s->now = *p;
    if (s->screen && watch_clock() - s->drawn >= REDRAWN) draw(s);
}

static void screen_epoch(void *own, const burn_progress *p)
{
    Screen *s = own;
    watch_history_epoch(&s->history, p);
    s->now = *p;
    if (s->screen) draw(s);
}

static void screen_checkpoint(void *own, const char *path, int64_t epoch, int best)
{
    char *text = watch_format("epoch %lld is kept in %s%s", (long long)epoch, path, best ? ", the best" : "");
    if (text) screen_say(own, BURN_NOTE, text);
    free(text);
}

static void screen_finish(void *own, const burn_outcome *outcome)
{
    Screen *s = own;
    give_terminal(s);
    watch_summary(s->to, &s->history, s->name, outcome);
    for (int i = 0; i < s->said_count; i++)
        if (s->levels[i] != BURN_NOTE)
            fprintf(s->to, "%s: %s\n", s->levels[i] == BURN_ERROR ? "error" : "warning", s->said[i]);
    fflush(s->to);
}

static void screen_close(void *own)
{
    Screen *s = own;
    give_terminal(s);
    if (s->from != stdin) fclose(s->from);
    for (int i = 0; i < s->said_count; i++) free(s->said[i]);
    free(s->said);
    free(s->levels);
    watch_history_free(&s->history);
    free(s->locale);
    free(s->name);
    free(s);
}

int burn_watch_screen(FILE *to, burn_watcher *watcher)
{
    int rows;
    to = to ? to : stderr;
    FILE *from = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "r");
    Screen *s = calloc(1, sizeof *s);
    if (!s || !from || !watch_terminal(to, &rows) || !watch_hold_knows(fileno(to))) {
        if (from && from != stdin) fclose(from);
        free(s);
        return burn_watch_lines(to, 0, watcher);
    }
    s->to = to;
    s->from = from;
    *watcher = (burn_watcher){ .own = s, .begin = screen_begin, .batch = screen_batch, .epoch = screen_epoch,
                               .checkpoint = screen_checkpoint, .say = screen_say, .wish = screen_wish,
                               .finish = screen_finish, .close = screen_close };
    return BURN_OK;
}
#endif
