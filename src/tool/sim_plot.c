/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `rueda sim` as a picture: efficiency over the number of ranks,
 * a line for each algorithm, one for the bound, and dots for what was measured.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool/sim.h"

#define WIDTH  720
#define HEIGHT 420
#define LEFT   60
#define RIGHT  560 /* the names of the lines are beyond */
#define TOP    40
#define BOTTOM 370

/* Colours that stay apart for colour-blind readers (Okabe and Ito 2008). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73",
                                      "#cc79a7", "#e69f00", "#56b4e9"};
#define COLOURS (int)(sizeof(colours) / sizeof(colours[0]))

/* The number of ranks by its logarithm, so that doublings are equally far
 * apart. The rows are in ascending order, so the last has the most. */
static double x_of(const struct rueda_tool_sim_report *report, int ranks)
{
    const int most = report->rows[report->count - 1].ranks;

    return most > 1 ? LEFT + (RIGHT - LEFT) * log2(ranks) / log2(most) : LEFT;
}

/* Efficiency from 0 to 110 %: a little above 100 is possible, where a step of
 * one rank was measured on a busier machine. */
static double y_of(double efficiency)
{
    return BOTTOM - (BOTTOM - TOP) * fmin(efficiency, 1.1) / 1.1;
}

static bool has_step(const struct rueda_tool_sim_row *row)
{
    return row->status == RUEDA_OK && row->result.status == RUEDA_OK;
}

static void write_axes(FILE *file, const struct rueda_tool_sim_report *report)
{
    int before = 0;

    for (int percent = 0; percent <= 100; percent += 20) {
        const double y = y_of(percent / 100.0);

        fprintf(file,
                "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/>"
                "<text x='%d' y='%.1f' text-anchor='end'>%d %%</text>\n",
                LEFT, RIGHT, y, y, LEFT - 6, y + 4, percent);
    }
    for (int i = 0; i < report->count; i++) {
        const int ranks = report->rows[i].ranks;

        if (ranks != before)
            fprintf(file,
                    "<text x='%.1f' y='%d' text-anchor='middle'>%d</text>\n",
                    x_of(report, ranks), BOTTOM + 18, ranks);
        before = ranks;
    }
    fprintf(file, "<text x='%d' y='%d' text-anchor='middle'>ranks</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 38);
}

static void write_name(FILE *file, int line, const char *colour,
                       const char *name)
{
    fprintf(file,
            "<line x1='%d' x2='%d' y1='%d' y2='%d' stroke='%s' "
            "stroke-width='2'/><text x='%d' y='%d'>%s</text>\n",
            RIGHT + 14, RIGHT + 34, TOP + 20 * line, TOP + 20 * line, colour,
            RIGHT + 40, TOP + 20 * line + 4, name);
}

/* A line through the rows of an algorithm; through the bounds for NULL. */
static void write_line(FILE *file, const struct rueda_tool_sim_report *report,
                       const char *algo, const char *colour)
{
    fprintf(file,
            "<polyline fill='none' stroke='%s' stroke-width='2'%s "
            "points='",
            colour, algo == NULL ? " stroke-dasharray='5 4'" : "");
    for (int i = 0; i < report->count; i++) {
        const struct rueda_tool_sim_row *row = &report->rows[i];
        const bool is_of =
            algo == NULL || strcmp(row->algo, algo) == 0 || row->ranks == 1;

        if (is_of && has_step(row))
            fprintf(file, "%.1f,%.1f ", x_of(report, row->ranks),
                    y_of(algo != NULL
                             ? rueda_tool_sim_efficiency(report, row)
                             : report->alone_ms * 1e6 / row->result.bound_ns));
    }
    fputs("'/>\n", file);
}

static bool is_first_of_algo(const struct rueda_tool_sim_report *report, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(report->rows[k].algo, report->rows[i].algo) == 0)
            return false;
    return true;
}

static void write_lines(FILE *file, const struct rueda_tool_sim_report *report)
{
    bool is_measured = false;
    int line = 0;

    write_line(file, report, NULL, "#888");
    write_name(file, line++, "#888", "bound");
    for (int i = 0; i < report->count; i++) {
        const struct rueda_tool_sim_row *row = &report->rows[i];
        const char *colour = colours[(line - 1) % COLOURS];

        if (row->measured_ms > 0) {
            is_measured = true;
            fprintf(file, "<circle cx='%.1f' cy='%.1f' r='4'/>\n",
                    x_of(report, row->ranks),
                    y_of(report->alone_ms / row->measured_ms));
        }
        if (!is_first_of_algo(report, i))
            continue;
        write_line(file, report, row->algo, colour);
        write_name(file, line++, colour, row->algo);
    }
    if (is_measured)
        fprintf(file,
                "<circle cx='%d' cy='%d' r='4'/><text x='%d' y='%d'>measured"
                "</text>\n",
                RIGHT + 24, TOP + 20 * line, RIGHT + 40, TOP + 20 * line + 4);
}

/* A name from a file, in XML. */
static void write_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '>' || *text == '&')
            fprintf(file, "&#%d;", *text);
        else
            fputc(*text, file);
    }
}

bool rueda_tool_sim_plot(const struct rueda_tool_sim_report *report,
                         const char *path)
{
    FILE *file = fopen(path, "we");
    bool is_well;

    if (file == NULL)
        return false;
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='12'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='22' font-size='14'>Scaling efficiency of ",
            WIDTH, HEIGHT, LEFT);
    write_text(file, report->model->name);
    fputs(" (rueda sim)</text>\n", file);
    write_axes(file, report);
    write_lines(file, report);
    fputs("</svg>\n", file);
    is_well = fflush(file) == 0 && ferror(file) == 0;
    return fclose(file) == 0 && is_well;
}
