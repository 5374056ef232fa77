/** A TCP proxy before Postgres that reads along: which statements are sent, with what they are given. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { portOf } from './loopback.js';

/** One execution: the text of the statement, and its parameters as they were sent. */
export type SentStatement = { readonly text: string; readonly given: string };

export interface StatementTap {
  /** A Postgres URL that leads through the proxy. */
  readonly url: string;
  /** What has been sent since it was asked last. */
  take(): SentStatement[];
  stop(): Promise<void>;
}

/** Before it a connection has said who it is: messages without a type. */
const HEAD_BYTES = 4;

export async function tapStatements(connectionString: string): Promise<StatementTap> {
  const url = new URL(connectionString);
  const target = { host: url.hostname, port: Number(url.port || 5432) };
  let sent: SentStatement[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const database = connect(target);
    const read = reader((statement) => sent.push(statement));
    client.on('data', read);
    client.pipe(database);
    database.pipe(client);
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  url.hostname = '127.0.0.1';
  url.port = String(await portOf(server));
  return {
    url: url.href,
    take() {
      const taken = sent;
      sent = [];
      return taken;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Follows what one client sends (Postgres, "Message Formats"): the texts that it names, and each that it binds. */
function reader(onStatement: (statement: SentStatement) => void): (data: Buffer) => void {
  const texts = new Map<string, string>();
  let left = Buffer.alloc(0);
  let hasBegun = false;
  return (data) => {
    left = Buffer.concat([left, data]);
    for (;;) {
      const typeBytes = hasBegun ? 1 : 0;
      if (left.length < typeBytes + HEAD_BYTES) return;
      const bytes = typeBytes + left.readInt32BE(typeBytes);
      if (left.length < bytes) return;
      const type = hasBegun ? String.fromCharCode(left.readUInt8(0)) : '';
      const body = left.subarray(typeBytes + HEAD_BYTES, bytes);
      left = left.subarray(bytes);
      hasBegun = true;
      if (type === 'Q') onStatement({ text: stringAt(body, 0), given: '' });
      if (type !== 'P' && type !== 'B') continue;
      const first = stringAt(body, 0);
      const second = stringAt(body, first.length + 1);
      if (type === 'P') texts.set(first, second);
      else {
        const text = texts.get(second) ?? '';
        onStatement({ text, given: body.toString('latin1', first.length + second.length + 2) });
      }
    }
  };
}

/** Up to the zero that ends it; a character a byte, so that its length is what it takes. */
const stringAt = (body: Buffer, from: number): string =>
  body.toString('latin1', from, body.indexOf(0, from));
