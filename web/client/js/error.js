// What goes wrong, as one class with a kind.

/** What went wrong. `kind` is one of the words of docs/ENGINES.md. */
export class HaulierError extends Error {
  constructor(kind, message, code = null) {
    super(message);
    this.name = 'HaulierError';
    this.kind = kind;
    this.code = code;
  }
}

/** What the machine throws has a kind; what else there is was not foreseen. */
export function asHaulierError(error) {
  return error.kind ? new HaulierError(error.kind, error.message) : error;
}
