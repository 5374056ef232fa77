/** Something that must never be, or must have come to be by now. */
export class Violation extends Error {
  /** The instance that it is about, if any. */
  readonly instance: string | undefined;

  constructor(message: string, instance?: string) {
    super(message);
    this.instance = instance;
  }
}
