/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the YAML subset of configuration files: sections with name: value
 * lines.
 */
#include "launch/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/near.h"
#include "launch/user_file.h"

#define FILE_MIB  1
#define KEY_BYTES 128

struct reading {
    const char *path;
    yaml_document_t *document;
    struct rueda_options *options;
    struct rueda_text *words;
};

static const char *text_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static unsigned line_of(const yaml_node_t *node)
{
    return (unsigned)node->start_mark.line + 1;
}

/* As YAML writes "no value": nothing, or a word without quotes. */
static bool is_null(const yaml_node_t *node)
{
    static const char *const words[] = {"~", "null", "Null", "NULL"};

    if (node->type != YAML_SCALAR_NODE)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
            strcmp(text_of(node), words[i]) == 0)
            return true;
    return node->data.scalar.length == 0;
}

/* A setting of the section, as an example; NULL: there is no such section. */
static const char *example_of(const char *section)
{
    const size_t len = strlen(section);

    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const char *key = rueda_options_table[id].key;

        if (key != NULL && strncmp(key, section, len) == 0 && key[len] == '.')
            return key + len + 1;
    }
    return NULL;
}

/* The command line has chosen: what the file says does not count. */
static bool is_decided(const struct rueda_options *options, int id)
{
    return id == RUEDA_OPTION_CONTROLLER &&
           (options->values[RUEDA_OPTION_GLOO] != NULL ||
            options->values[RUEDA_OPTION_MPI] != NULL ||
            options->values[RUEDA_OPTION_JSRUN] != NULL);
}

static void note_unknown(struct reading *reading, const yaml_node_t *node,
                         const char *key)
{
    const char *known[RUEDA_OPTION_COUNT + 1];
    const char *near;
    int count = 0;

    for (int id = 0; id < RUEDA_OPTION_COUNT; id++)
        if (rueda_options_table[id].key != NULL)
            known[count++] = rueda_options_table[id].key;
    known[count] = NULL;
    near = rueda_near_match(key, known);
    rueda_text_add(&reading->options->notes,
                   "%.200s:%u: '%.64s' is unknown and left out", reading->path,
                   line_of(node), key);
    if (near != NULL)
        rueda_text_add(&reading->options->notes, "; did you mean '%s'?", near);
    rueda_text_add(&reading->options->notes, "\n");
}

static bool give(struct reading *reading, const yaml_node_t *node,
                 const char *key)
{
    const char *example = example_of(key);
    struct rueda_text why = {{0}};
    int id = 0;

    while (id < RUEDA_OPTION_COUNT &&
           (rueda_options_table[id].key == NULL ||
            strcmp(rueda_options_table[id].key, key) != 0))
        id++;
    if (is_null(node) || is_decided(reading->options, id))
        return true;
    if (id == RUEDA_OPTION_COUNT && example == NULL) {
        note_unknown(reading, node, key);
        return true;
    }
    if (example != NULL)
        rueda_text_set(&why, "%s takes settings below it, such as \"%s:\"", key,
                       example);
    else if (node->type != YAML_SCALAR_NODE)
        rueda_text_set(&why, "%s takes one value", key);
    else if (strlen(text_of(node)) != node->data.scalar.length)
        rueda_text_set(&why, "%s has a zero byte in it", key);
    else if (rueda_options_give(reading->options, (rueda_option_id)id, key,
                                text_of(node), &why))
        return true;
    rueda_text_set(reading->words, "%.200s:%u: %s", reading->path,
                   line_of(node), why.chars);
    return false;
}

static void say_not_yaml(const char *path, const yaml_parser_t *parser,
                         struct rueda_text *words)
{
    rueda_text_set(words, "%.200s:%u: this is not YAML: %s", path,
                   (unsigned)parser->problem_mark.line + 1,
                   parser->problem != NULL ? parser->problem : "no memory");
}

/* A section, or the whole file if section is "". */
static bool read_mapping(struct reading *reading, const yaml_node_t *mapping,
                         const char *section)
{
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;

    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name =
            yaml_document_get_node(reading->document, pair->key);
        const yaml_node_t *value =
            yaml_document_get_node(reading->document, pair->value);
        char key[KEY_BYTES];
        bool is_good;

        if (name->type != YAML_SCALAR_NODE)
            continue;
        snprintf(key, sizeof(key), "%s%s%s", section,
                 section[0] != '\0' ? "." : "", text_of(name));
        if (value->type == YAML_MAPPING_NODE && section[0] == '\0')
            is_good = read_mapping(reading, value, key);
        else
            is_good = give(reading, value, key);
        if (!is_good)
            return false;
    }
    return true;
}

/* Those after the first would be left out silently. */
static bool is_last(const char *path, yaml_parser_t *parser,
                    struct rueda_text *words)
{
    yaml_document_t next;
    const yaml_node_t *root;

    if (yaml_parser_load(parser, &next) == 0) {
        say_not_yaml(path, parser, words);
        return false;
    }
    root = yaml_document_get_root_node(&next);
    if (root != NULL)
        rueda_text_set(words, "%.200s:%u: one document is expected", path,
                       line_of(root));
    yaml_document_delete(&next);
    return root == NULL;
}

static bool read_document(struct reading *reading)
{
    const yaml_node_t *root = yaml_document_get_root_node(reading->document);

    if (root == NULL) /* an empty file */
        return true;
    if (root->type == YAML_MAPPING_NODE)
        return read_mapping(reading, root, "");
    rueda_text_set(reading->words,
                   "%.200s:%u: sections are expected, such as \"params:\"",
                   reading->path, line_of(root));
    return false;
}

bool rueda_yaml_parse(const char *path, const char *text, size_t bytes,
                      struct rueda_options *options, struct rueda_text *words)
{
    yaml_document_t document;
    struct reading reading = {path, &document, options, words};
    yaml_parser_t parser;
    bool is_good;

    if (yaml_parser_initialize(&parser) == 0) {
        rueda_text_set(words, "no memory");
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    if (yaml_parser_load(&parser, &document) == 0) {
        say_not_yaml(path, &parser, words);
        yaml_parser_delete(&parser);
        return false;
    }
    is_good = read_document(&reading) && is_last(path, &parser, words);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return is_good;
}

bool rueda_yaml_read(const char *path, struct rueda_options *options,
                     struct rueda_text *words)
{
    char *text =
        rueda_user_file_read("the configuration file", path, FILE_MIB, words);
    const bool is_good =
        text != NULL &&
        rueda_yaml_parse(path, text, strlen(text), options, words);

    free(text);
    return is_good;
}
