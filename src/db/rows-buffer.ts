/**
 * Encodes the texts of rows into one reused buffer. Joining them into one text first would copy them once
 * more, and one character outside of Latin-1 would double the memory of all of them.
 */

import type { RowsCommand } from './batch.js';

/** Kept between flushes; few need more. */
const KEPT_BYTES = 1024 * 1024;

/** Maximum bytes of a UTF-16 unit in UTF-8. */
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
