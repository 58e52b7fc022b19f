/* A client that accepts no block as large as the world: `tiny TICKET` fails unless the server closes it, and
 * says why. The step `c` of CI runs it before the client of docs/C.md, which then still has to get its world. */

#include <haulier.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
    haulier_client_settings settings;
    haulier_connection_settings connection;
    haulier_client *client;
    haulier_event event;
    int is_told = 0, is_over = 0;

    if (count != 2 || haulier_client_settings_init(&settings, sizeof settings)
        || haulier_connection_settings_init(&connection, sizeof connection))
        return 2;
    connection.max_block_bytes = 1000;
    settings.connection = &connection;
    if (haulier_client_connect(arguments[1], &settings, &client))
        return 2;
    while (!is_over && haulier_client_wait(client, 20000, &event) == HAULIER_OK) {
        if (event.kind == HAULIER_EVENT_CLOSED) {
            is_told = strstr(event.text, "larger than your max_block_bytes") != NULL;
            is_over = 1;
            fprintf(stderr, "%s: %s\n", haulier_result_name(event.result), event.text);
        }
        haulier_event_free(&event);
    }
    haulier_client_free(client);
    return is_told ? 0 : 1;
}
