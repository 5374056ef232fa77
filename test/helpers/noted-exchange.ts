/** An exchange without a socket: notes what would leave it. */

import { createLogger } from '../../src/base/log.js';
import { Exchange } from '../../src/http/exchange.js';
import { RequestHead } from '../../src/http/request-head.js';
import type { HttpReply } from '../../src/http/server.js';
import { Transport } from '../../src/http/transport.js';

export class NotedExchange extends Exchange {
  readonly seen: string[] = [];

  constructor(head = new RequestHead('GET', '/', '')) {
    const transport = new Transport(
      {
        ...{ host: '', port: 0, maxBodyBytes: 1, maxHeaderBytes: 1, corsOrigins: [] },
        ...{ newRequestId: () => 'r', bodyIdleTimeoutMs: 1_000 },
        log: createLogger('silent', 'test'),
      },
      () => undefined,
    );
    transport.close();
    super(transport, head);
  }

  protected sendReply({ status }: HttpReply): void {
    this.seen.push(`reply ${status}`);
  }

  protected sendStreamHead(): void {}

  protected writeChunk(chunk: string | Buffer): boolean {
    return this.seen.push(`write ${chunk}`) > 0;
  }

  protected endStream(): void {
    this.seen.push('end');
  }

  protected destroy(): void {
    this.seen.push('destroy');
  }
}
