/* The server of docs/C.md: it prints a ticket, and gives its world to whoever joins with it.
 *
 *     cc join_server.c -o join_server $(pkg-config --cflags --libs haulier) && ./join_server */

#include <haulier.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, haulier_last_error());
    return 1;
}

int main(void) {
    static char world[500000];
    char ticket[HAULIER_TEXT_BYTES];
    haulier_secret secret;
    haulier_server_settings settings;
    haulier_server *server;
    haulier_block *block;
    haulier_event event;
    int has_thanks = 0;

    if (haulier_check_abi(HAULIER_ABI_VERSION) || haulier_secret_random(&secret)
        || haulier_server_settings_init(&settings, sizeof settings))
        return failed("cannot begin");
    memset(world, 'w', sizeof world);
    if (haulier_block_new(1, world, sizeof world, &block)) /* hashed once, whoever gets it */
        return failed("no block");
    settings.secret = &secret; /* whoever has the ticket has it, and may join */
    settings.first_block = block; /* goes with the answer, however late this program looks */
    if (haulier_server_bind("127.0.0.1:0", 1, &settings, &server)
        || haulier_server_ticket(server, NULL, 0, ticket, sizeof ticket))
        return failed("cannot listen");
    haulier_block_free(block); /* the server has it */
    puts(ticket);
    fflush(stdout);

    while (!has_thanks && haulier_server_wait(server, 60000, &event) == HAULIER_OK) {
        if (event.kind == HAULIER_EVENT_MESSAGE) {
            printf("a client says %.*s\n", (int)event.data_bytes, (const char *)event.data);
            has_thanks = 1; /* a real server goes on */
        }
        haulier_event_free(&event);
    }
    haulier_server_finish(server, 5000);
    haulier_server_free(server);
    return has_thanks ? 0 : failed("nobody came");
}
