/** Checks whether the address can be bound, before anything else is started. */

import { once } from 'node:events';
import { createServer } from 'node:net';
import { ConfigError } from '../base/config-error.js';

/** @throws ConfigError with the reason and a remedy */
export async function expectFreePort(host: string, port: number): Promise<void> {
  const probe = createServer();
  try {
    probe.listen({ host, port, exclusive: true });
    await once(probe, 'listening');
  } catch (error) {
    throw unusable(host, port, error);
  }
  probe.close();
  await once(probe, 'close');
}

const ADVICE = 'ENGINE_HTTP_ADDR=host:port chooses another address';

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another program',
  EACCES: 'is for privileged users only: take one from 1024 on',
  EADDRNOTAVAIL: 'belongs to an address that this machine does not have',
  ENOTFOUND: 'belongs to a host whose name nobody knows',
};

/** @param error from the system, or from a backend that could not bind */
export function unusable(host: string, port: number, error: unknown): ConfigError {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const why = REASONS[code] ?? `cannot be used (${message})`;
  return new ConfigError(`port ${port} of ${host} ${why}; ${ADVICE}`, { cause: error });
}
