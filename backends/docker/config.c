#include "backends/docker/config.h"

#include <string.h>

#include "backends/api/backend.h"

#define IMAGE_PREFIX "image "
#define NAME_CHARS   "abcdefghijklmnopqrstuvwxyz0123456789._+-"
#define FILE_CHARS   NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

struct key {
    const char *name;
    size_t offset, size;
    bool words;       /* takes further lines */
    const char *made; /* of these characters only; NULL: any that can be printed */
};

#define FIELD_OF(type, f) offsetof(struct type, f), sizeof(((struct type *)NULL)->f)

static const struct key docker_keys[] = {
    {"host", FIELD_OF(al_docker_config, host), false, NULL},
    {"tls_ca", FIELD_OF(al_docker_config, tls_ca), false, NULL},
    {"tls_cert", FIELD_OF(al_docker_config, tls_cert), false, NULL},
    {"tls_key", FIELD_OF(al_docker_config, tls_key), false, NULL},
    {"user", FIELD_OF(al_docker_config, user), false, "0123456789:"},
    {"oci_runtime", FIELD_OF(al_docker_config, oci_runtime), false, FILE_CHARS},
    {"require", 0, 0, true, NULL},
};

static const struct key image_keys[] = {
    {"image", FIELD_OF(al_docker_image, image), false, FILE_CHARS "/:@"},
    {"argv", FIELD_OF(al_docker_image, argv), true, NULL},
    {"compile", FIELD_OF(al_docker_image, compile), true, NULL},
    {"aliases", FIELD_OF(al_docker_image, aliases), true, NAME_CHARS " "},
    {"code_file", FIELD_OF(al_docker_image, code_file), false, FILE_CHARS},
    {"output_file", FIELD_OF(al_docker_image, output_file), false, FILE_CHARS},
    {"version", FIELD_OF(al_docker_image, version), false, FILE_CHARS},
};

/* What an [image NAME] of these names need not say. */
static const struct al_docker_image known[] = {
    {.name = "python", .aliases = "python3 py", .argv = "python3 {code}", .code_file = "main.py"},
    {.name = "javascript", .aliases = "js node", .argv = "node {code}", .code_file = "main.js"},
    {.name = "typescript",
     .aliases = "ts",
     .compile = "esbuild {code} --outfile={output} --bundle --platform=node --format=cjs "
                "--packages=external --log-level=warning --color=false",
     .argv = "node {output}",
     .code_file = "main.ts",
     .output_file = "main.js"},
    {.name = "bash", .argv = "bash {code}", .code_file = "main.sh"},
};

void al_docker_config_defaults(struct al_docker_config *config)
{
    *config = (struct al_docker_config){
        .user = "65534:65534",
        .require = AL_LAYERS_ALL & ~(uint32_t)(AL_LAYER_USERNS | AL_LAYER_OWN_UID),
    };
}

bool al_docker_config_has(const char *section)
{
    return strcmp(section, "docker") == 0 ||
           strncmp(section, IMAGE_PREFIX, sizeof IMAGE_PREFIX - 1) == 0;
}

static struct al_docker_image *find_image(struct al_docker_config *config, const char *section)
{
    const char *name = section + sizeof IMAGE_PREFIX - 1;
    for (size_t i = 0; i < config->n_images; i++) {
        if (strcmp(config->images[i].name, name) == 0) {
            return &config->images[i];
        }
    }
    return NULL;
}

int al_docker_config_open(struct al_docker_config *config, const char *section, struct al_err *err)
{
    if (strcmp(section, "docker") == 0 || find_image(config, section)) {
        return 0;
    }
    const char *name = section + sizeof IMAGE_PREFIX - 1;
    size_t len = strlen(name);
    if (len == 0 || len >= AL_DOCKER_NAME_MAX || strspn(name, NAME_CHARS) != len) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "[image NAME]: not a runtime's name; allowed: a-z 0-9 . _ + -");
    }
    if (config->n_images == AL_DOCKER_IMAGES_MAX) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "[image NAME]: more than %d of them",
                          AL_DOCKER_IMAGES_MAX);
    }
    struct al_docker_image *image = &config->images[config->n_images++];
    memcpy(image->name, name, len + 1);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) {
            *image = known[i];
        }
    }
    return 0;
}

static int set_require(struct al_docker_config *config, bool continues, const char *text,
                       struct al_err *err)
{
    uint32_t layers = continues ? config->require : 0;
    while (*(text += strspn(text, " \t")) != '\0') {
        size_t n = strcspn(text, " \t");
        unsigned i = 0;
        while (i < AL_LAYER_COUNT &&
               (strlen(al_layer_name(i)) != n || memcmp(al_layer_name(i), text, n) != 0))
        {
            i++;
        }
        if (i == AL_LAYER_COUNT) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                              "not a layer; allowed: the names that `isolation` has");
        }
        layers |= 1u << i;
        text += n;
    }
    config->require = layers;
    return 0;
}

/* Appends words with single blanks between. */
static int set_text(const struct key *key, char *to, bool continues, const char *text,
                    struct al_err *err)
{
    size_t len = continues ? strlen(to) : 0;
    for (const char *at = text; *at; at++) {
        bool blank = *at == ' ' || *at == '\t';
        if (key->made && !blank && !strchr(key->made, *at)) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "allowed: %s", key->made);
        }
    }
    while (*(text += strspn(text, " \t")) != '\0') {
        size_t n = strcspn(text, " \t");
        if (len > 0 && !key->words) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "has one word only");
        }
        if (len + n + 2 > key->size) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "too long; allowed: at most %zu bytes",
                              key->size - 1);
        }
        if (len > 0) {
            to[len++] = ' ';
        }
        memcpy(to + len, text, n);
        len += n;
        text += n;
    }
    to[len] = '\0';
    return 0;
}

int al_docker_config_set(struct al_docker_config *config, const char *section, const char *name,
                         bool continues, const char *text, struct al_err *err)
{
    bool docker = strcmp(section, "docker") == 0;
    struct al_docker_image *image = docker ? NULL : find_image(config, section);
    const struct key *keys = docker ? docker_keys : image_keys;
    size_t n = docker ? sizeof docker_keys / sizeof *keys : sizeof image_keys / sizeof *keys;
    size_t i = 0;
    while (i < n && strcmp(keys[i].name, name) != 0) {
        i++;
    }
    if (i == n || (!docker && !image)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "unknown key");
    }
    uint32_t *seen = docker ? &config->seen : &image->seen;
    if (continues ? !keys[i].words : (*seen & 1u << i) != 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s",
                          continues ? "has one value only"
                                    : "given twice (an indented line continues the key above it)");
    }
    *seen |= 1u << i;
    if (keys[i].size == 0) {
        return set_require(config, continues, text, err);
    }
    char *field = (docker ? (char *)config : (char *)image) + keys[i].offset;
    return set_text(&keys[i], field, continues, text, err);
}

static const char *what_is_wrong(const struct al_docker_image *image)
{
    bool output = strstr(image->argv, "{output}") || strstr(image->compile, "{output}");
    return image->image[0] == '\0'                   ? "image: missing"
           : image->argv[0] == '\0'                  ? "argv: missing"
           : image->code_file[0] == '\0'             ? "code_file: missing"
           : output && image->output_file[0] == '\0' ? "output_file: missing"
                                                     : NULL;
}

int al_docker_config_check(const struct al_docker_config *config, struct al_err *err)
{
    const char *host = config->host;
    bool tcp = strncmp(host, "tcp://", 6) == 0;
    if (host[0] != '\0' && !tcp && strncmp(host, "unix:///", 8) != 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "[docker] host: neither unix:///PATH nor tcp://HOST:PORT");
    }
    if (tcp && (!config->tls_ca[0] || !config->tls_cert[0] || !config->tls_key[0])) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "[docker] host: tcp needs tls_ca, tls_cert and tls_key: whoever reaches "
                          "the daemon is root there");
    }
    if (strspn(config->user, "0:") == strlen(config->user) || config->user[0] == '0') {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "[docker] user: not root (UID:GID)");
    }
    for (size_t i = 0; i < config->n_images; i++) {
        const char *wrong = what_is_wrong(&config->images[i]);
        if (wrong) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "[image %s] %s", config->images[i].name,
                              wrong);
        }
    }
    return 0;
}
