/**
 * Where the texts of rows become the bytes that are sent. Each text is encoded on its own, into memory that is
 * used again: joined to one text first, they would be copied once more, and one letter outside of Latin-1 would
 * make all of them two bytes a character.
 */

import type { RowsCommand } from './batch.js';

/** What is kept between flushes; few need more. */
const KEPT_BYTES = 1024 * 1024;

/** A UTF-16 unit takes no more in UTF-8. */
const BYTES_PER_UNIT_MAX = 3;

const [OPEN, COMMA, CLOSE, LINE_FEED] = [0x5b, 0x2c, 0x5d, 0x0a] as const;

export class RowsBuffer {
  #bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
  #length = 0;

  /** The rows as their statement takes them; valid until the next call. */
  bytesOf({ rows, areLines }: Pick<RowsCommand, 'rows' | 'areLines'>): Buffer {
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
    this.#length = 0;
    if (!areLines) this.#put(OPEN);
    for (let i = 0; i < rows.length; i++) {
      if (i > 0) this.#put(areLines ? LINE_FEED : COMMA);
      this.#write(rows[i]!);
    }
    if (!areLines) this.#put(CLOSE);
    return this.#bytes.subarray(0, this.#length);
  }

  #write(text: string): void {
    this.#reserve(text.length * BYTES_PER_UNIT_MAX);
    this.#length += this.#bytes.write(text, this.#length);
  }

  #put(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#length] = byte;
    this.#length += 1;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
