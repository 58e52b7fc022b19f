/* haulier: large blocks over UDP, quickly and reliably: a world for every player who joins.
 *
 * This file is made by `cargo xtask c --header` of the sources of haulier-ffi; change those. The page for its
 * users is docs/C.md.
 *
 * What holds for every function:
 *
 * Errors     What can fail returns a haulier_result: HAULIER_OK, HAULIER_NOTHING, or an error below 0, for
 *            which haulier_last_error() has a sentence. Any of them may be HAULIER_ERROR_USAGE, for a null
 *            pointer or a number that makes no sense, or HAULIER_ERROR_INTERNAL, for a bug of haulier. After
 *            an error nothing was done, and nothing was written but where a comment says so.
 * Ownership  haulier_client, haulier_server, haulier_block and haulier_buffer are made by the library, and
 *            freed once with the _free function of their name. What the program passes stays its own, and is
 *            copied if it is needed after the call. What an event points to is the event's, until
 *            haulier_event_free(). Nothing else is to be freed.
 * Threads    Any thread may call any function, several at the same time too, on the same object too, but for
 *            one: no other thread may use an object while it is freed. Settings, claims and events are plain
 *            memory of the program's. There are no callbacks, and there is no global state but the sentence
 *            of the last error, which each thread has for itself.
 * Waiting    Only _wait and _finish functions wait, and those that take an address, if it is a name.
 * Structs    A struct that begins with struct_size is filled by its _init function, and then changed: so a
 *            program works with a later library, which has more fields. Fields that are 0 or 1 are numbers.
 * Units      They are in the names: _bytes, _bps (bits per second), _ms, _us, _s.
 * Text       Of the program: UTF-8 that ends with a 0. Of the library: the same, and in English.
 */
