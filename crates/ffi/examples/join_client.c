/* The client of docs/C.md: it joins with the ticket that the server has printed.
 *
 *     cc join_client.c -o join_client $(pkg-config --cflags --libs haulier) && ./join_client haulier1:... */

#include <haulier.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, haulier_last_error());
    return 1;
}

int main(int count, char **arguments) {
    haulier_client *client;
    haulier_event event;
    haulier_result result;
    int has_world = 0, is_over = 0;

    if (haulier_check_abi(HAULIER_ABI_VERSION))
        return failed("another library");
    if (count != 2) {
        fprintf(stderr, "give me the ticket of the server\n");
        return 2;
    }
    if (haulier_client_connect(arguments[1], NULL, &client))
        return failed("cannot connect");
    while (!is_over && (result = haulier_client_wait(client, 20000, &event)) == HAULIER_OK) {
        switch (event.kind) {
        case HAULIER_EVENT_BLOCK_PROGRESS:
            printf("%.0f %%\n", 100.0 * (double)event.received_bytes / (double)event.length_bytes);
            break;
        case HAULIER_EVENT_BLOCK:
            printf("the world is here: %lu bytes\n", (unsigned long)event.data_bytes);
            is_over = has_world = 1;
            if (haulier_client_send_message(client, "thank you", strlen("thank you")))
                failed("no thanks");
            break;
        case HAULIER_EVENT_CLOSED:
            fprintf(stderr, "no world: %s: %s\n", haulier_result_name(event.result), event.text);
            is_over = 1;
            break;
        default:
            break;
        }
        haulier_event_free(&event);
    }
    if (!is_over)
        fprintf(stderr, "no world: %s\n",
                result == HAULIER_NOTHING ? "nothing for 20 s" : haulier_last_error());
    if (has_world && haulier_client_finish(client, 5000)) /* until the thanks have arrived */
        failed("no thanks");
    haulier_client_free(client);
    return has_world ? 0 : 1;
}
