# cmake -DOUT=models.c -DFILES=a.model;b.model -P embed.cmake: a C file with the
# text of each model, in the order of FILES, and their names.
set(texts "")
set(rows "")
set(names "")
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME_WE)
    string(MAKE_C_IDENTIFIER ${name} symbol)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    # Lines of 16 bytes, for editors.
    string(REGEX REPLACE
           "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))"
           "\\1\n" bytes "${bytes}")
    string(APPEND texts "static const char text_${symbol}[] = {\n${bytes}0};\n")
    string(APPEND rows "    {\"${name}\", text_${symbol}},\n")
    string(APPEND names "    \"${name}\",\n")
endforeach()
file(WRITE ${OUT} "/* Made by src/predict/embed.cmake. */
#include <string.h>

#include \"predict/model.h\"

${texts}
static const struct {
    const char *name;
    const char *text;
} models[] = {
${rows}};

const char *const rueda_model_names[] = {
${names}    NULL,
};

const char *rueda_model_text(const char *name)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (strcmp(models[i].name, name) == 0)
            return models[i].text;
    return NULL;
}
")
