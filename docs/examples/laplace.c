/* A mechanism in C that answers with binary frames, many outcomes at once.
 *
 * cc -O2 -o laplace laplace.c -lm
 * dpaudit run --command "./laplace 1" --d1 0 --d2 1 --epsilon 1
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static double uniform(void) /* in (0, 1), by SplitMix64 */
{
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

/* The number after a key. A request is one flat object, so that no parser is needed. */
static const char *after(const char *request, const char *key)
{
    const char *found = strstr(request, key);
    if (found == NULL) {
        fprintf(stderr, "a request without %s\n", key);
        exit(1);
    }
    return found + strlen(key);
}

int main(int argc, char **argv)
{
    char request[4096];
    double epsilon = argc > 1 ? atof(argv[1]) : 1.0;

    puts("{\"dpaudit\": 1, \"frames\": \"float64\"}");
    fflush(stdout);
    while (fgets(request, sizeof request, stdin) != NULL) {
        double value = strtod(after(request, "\"dataset\": "), NULL);
        uint64_t size = strtoull(after(request, "\"size\": "), NULL, 10);
        state = strtoull(after(request, "\"seed\": "), NULL, 10);
        for (uint64_t i = 0; i < size; i++) {
            double outcome = value + (log(uniform()) - log(uniform())) / epsilon;
            fwrite(&outcome, sizeof outcome, 1, stdout);
        }
        fflush(stdout);
    }
    return 0;
}
