/** Interim responses of servers that undici takes for a fault, although every client must accept them (RFC 9110, 15.2). */

import type { Socket } from 'node:net';

const CONTINUES = ['HTTP/1.1 100', 'HTTP/1.0 100'];
const STATUS_BYTES = CONTINUES[0]!.length;
const HEAD_END = '\r\n\r\n';
/** The limit of undici for the head of a response. */
const HEAD_BYTES_MAX = 16 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Drops each `100 Continue` before a response. Without pipelining, what is read after a write begins a response, since
 * no request of the pool is written after its response has begun.
 */
export function ignoringContinue(socket: Socket): Socket {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let isAtHead = true;
  let held: Buffer = NOTHING;
  socket.write = (...args: unknown[]) => {
    isAtHead = true;
    return write(...args);
  };
  socket.read = (size) => {
    const chunk: Buffer | null = read(size);
    if (!isAtHead || chunk === null) return chunk;
    held = Buffer.concat([held, chunk]);
    while (held.length > 0 && mayBeContinue(held)) {
      const end = held.indexOf(HEAD_END);
      if (end < 0 && held.length <= HEAD_BYTES_MAX) return null;
      if (end < 0) break;
      held = held.subarray(end + HEAD_END.length);
    }
    if (held.length === 0) return null;
    isAtHead = false;
    const begin = held;
    held = NOTHING;
    return begin;
  };
  return socket;
}

function mayBeContinue(bytes: Buffer): boolean {
  const begin = bytes.toString('latin1', 0, STATUS_BYTES);
  return CONTINUES.some((status) => status.startsWith(begin));
}
